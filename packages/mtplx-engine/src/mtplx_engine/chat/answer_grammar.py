"""The grammar of a whole answer: thoughts, then what was asked for, or calls of functions.

A request names the form of its answer and the functions that may be called. What the model writes
around them, by its own habits, is added here, in Lark as llguidance reads it.
"""

from collections.abc import Callable

from mtplx_engine.chat.dialects.base import Dialect, Mark
from mtplx_engine.chat.marks import Marks
from mtplx_engine.chat.parser import AnswerForm
from mtplx_engine.chat.reasoning import ReasoningStart
from mtplx_engine.chat.tool_schemas import enforceable
from mtplx_engine.constraint import Composed, Grammar
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.tools import Calling, Tool

_ANY = r"/(.|\n)*/"
_SPACE = r"SPACE: /[ \n\r\t]{1,8}/"


def answer_grammar(
    asked: Grammar | None,
    form: AnswerForm,
    calling: Calling,
    dialect: Dialect,
    marks: Marks,
    compiles: Callable[[str], None] | None = None,
) -> Grammar | None:
    """What the answer must look like from its first token to its last; None: anything goes.

    Args:
        asked: The form of the answer proper.
        form: How the answer is going to be read.
        calling: Whether and what may be called.
        dialect: How the model writes calls, also where none may be made.
        marks: The tokens that marks are written with.
        compiles: Tries the rules of each function alone; see `enforceable`.

    Raises:
        InvalidRequest: A strict function has a schema that cannot be enforced.
    """
    if asked is None and not _restricts(form.tools, calling, dialect):
        return None
    tools = [
        enforceable(tool, _where(tool, at), dialect, marks.spell, compiles)
        for at, tool in enumerate(form.tools)
        if calling.mode != "none" and (calling.allowed is None or tool.name in calling.allowed)
    ]
    rules = _body(asked, tools, calling, dialect, marks)
    start, thinking = _thinking(form.reasoning, marks, dialect)
    parts = {"answer": asked} if asked is not None else {}
    return Composed("\n".join([start, *thinking, rules]), parts)


def _where(tool: Tool, at: int) -> str:
    return tool.where or f"tools[{at}].function.parameters"


def _restricts(tools: tuple[Tool, ...], calling: Calling, dialect: Dialect) -> bool:
    """Whether not every answer is as good as any other."""
    if not tools or (calling.mode == "none" and dialect.bare):
        return False  # without a mark that only calls have, what looks like one is text
    return (
        calling.mode != "auto" or calling.allowed is not None or any(tool.strict for tool in tools)
    )


def _body(
    asked: Grammar | None,
    callable_: list[Tool],
    calling: Calling,
    dialect: Dialect,
    marks: Marks,
) -> str:
    """Rules that derive `body`: what comes after thoughts."""
    answer = _led("@answer", dialect, marks)
    text = _led("TEXT", dialect, marks)
    text_rule = f"TEXT: {_ANY} & ~/{_without(dialect.openers)}/"
    if not callable_:
        return f"body: {answer}" if asked is not None else f"body: {text}\n{text_rule}"
    spelled = dialect.grammar(callable_, calling.parallel, marks.spell)
    if calling.mode == "required":
        return f"body: calls\n{spelled}"
    if asked is not None:
        return f"body: {answer} | calls\n{spelled}"
    if dialect.framed:
        return f"body: {text} | calls\n{text_rule}\n{spelled}"
    if dialect.bare:
        message = (
            "This model's calls cannot be told from text by a grammar: strict functions and"
            " allowed_tools need tool_choice 'required' here."
        )
        raise InvalidRequest(message, "tools")
    mark, lead = _after_text(dialect.openers[0], marks)
    calls = dialect.grammar(callable_, calling.parallel, mark)
    more = "*" if calling.parallel else "?"
    return "\n".join([f"body: calls{more} TEXT", text_rule, calls, lead])


def _led(rule: str, dialect: Dialect, marks: Marks) -> str:
    """A rule behind what stands before plain answers of this dialect."""
    return f"{marks.spell(dialect.lead)} {rule}" if dialect.lead else rule


def _without(texts: tuple[str, ...]) -> str:
    """A pattern of all texts that hold one of these."""
    escaped = "|".join("".join(f"\\x{{{ord(each):x}}}" for each in text) for text in texts)
    return rf"(.|\n)*({escaped})(.|\n)*"


def _after_text(opener: str, marks: Marks) -> tuple[Mark, str]:
    """How to write an opener that may have text before it, and the rule for that."""
    lazy = "" if marks.is_token(opener) else "[lazy]"

    def mark(text: str) -> str:
        return "call_lead" if text == opener else marks.spell(text)

    return mark, f"call_lead{lazy}: TEXT {marks.spell(opener)}"


def _thinking(
    start: ReasoningStart | None, marks: Marks, dialect: Dialect
) -> tuple[str, list[str]]:
    """The rule `start` and what it needs: thoughts where the model thinks, then `body`."""
    if start is None or start.is_closed:
        return "start: body", []
    opener, closer = start.markers.opener, start.markers.closer
    text = "thoughts: " if marks.is_token(closer) else "thoughts[lazy]: "
    rules = [f"{text}{_ANY} {marks.spell(closer)}", _SPACE]
    after = f"{marks.spell(dialect.between)} body" if dialect.between else "SPACE? body"
    if start.is_open:
        return f"start: thoughts {after}", rules
    return f"start: body | {marks.spell(opener)} thoughts {after}", rules
