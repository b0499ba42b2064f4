"""Constraints by llguidance, which walks a grammar's bytes and the vocabulary's in step.

Where the grammar forces bytes, llguidance allows only the token by which the model's own tokenizer
would write them. So a forced stretch is a run of single choices, and the model is not led to spell
`"name"` in pieces that it never saw.
"""

import json
import re
from collections.abc import Collection
from copy import copy
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from llguidance import numpy as bitmasks
from numpy.typing import NDArray

from mtplx_engine.chat.json_schema import checked
from mtplx_engine.chat.json_text import JSON_OPTIONS
from mtplx_engine.constraint import (
    Composed,
    Constraint,
    Grammar,
    JsonObject,
    JsonSchema,
    Lark,
    Regex,
)
from mtplx_engine.errors import InvalidRequest

_PARAM = "grammar"
_MARK = "\U0010ffff"  # not a character, so no text has it
_TAG = re.compile(r"<[^<>\s]+>")
_LARK_PARTS = re.compile(
    r'"(?:\\.|[^"\\])*"'  # a text,
    r"|//[^\n]*"  # a comment,
    r"|/(?:\\.|[^/\\\n])+/"  # a pattern: in these a tag is text
    r"|(?P<tag><[^<>\s\[\]]+>)"
)
# Chains of a few thousand rules overflow the stack of llguidance, which nothing can catch.
_MOST_DEFINITIONS = 500
_DEFINITION = re.compile(r"^[ \t]*[?!]?\w[^:\n]*:", re.MULTILINE)
_DIRECTIVE = re.compile(r"%[A-Za-z]+")
_DIRECTIVES = ("%ignore", "%import")


class Grammars:
    """Makes constraints over one model's vocabulary; see `constraint.ConstraintFactory`.

    Reading a large vocabulary takes up to a second: make one of these per model and keep it. It may
    be used from several threads.
    """

    def __init__(self, tokenizer: Any, *, vocabulary: int, end_tokens: Collection[int]) -> None:
        """Read a model's vocabulary.

        Args:
            tokenizer: mlx-lm's tokenizer wrapper, or what it wraps.
            vocabulary: Number of logits per position. Those without a token are never allowed.
            end_tokens: Ids that end an answer.

        Raises:
            InvalidRequest: No constraint can be made over this vocabulary.
        """
        self._size = vocabulary
        self._ends = np.array(sorted(token for token in end_tokens if token < vocabulary), np.intp)
        if not self._ends.size:
            raise InvalidRequest("This model has no end token to end a grammar with.", _PARAM)
        try:
            backend = copy(tokenizer.backend_tokenizer)
            backend.no_padding()
            backend.no_truncation()
            described = _hide_added(backend.to_str())
            self._tokenizer = LLTokenizer(described, eos_token=self._ends.tolist())
        except (AttributeError, ValueError) as error:
            message = f"This model's tokenizer cannot follow a grammar: {_reason(error)}"
            raise InvalidRequest(message, _PARAM) from error

    def make(self, grammar: Grammar) -> Constraint:
        """See `constraint.ConstraintFactory.make`."""
        try:
            kind, source = _compile(grammar)
        except UnicodeEncodeError:
            message = "The grammar holds half of a surrogate pair, which is not a character."
            raise InvalidRequest(message, _where(grammar)) from None
        # Verbose errors quote the whole grammar and the parser's tables. A row holds four items
        # for each property that may come next; the usual limit is 2,000.
        limits = LLParserLimits(verbose_errors=False, max_items_in_row=20_000)
        matcher = LLMatcher(self._tokenizer, source, log_level=0, limits=limits)
        if matcher.is_error():
            if isinstance(grammar, Composed):  # whose own rules are right
                for part in grammar.parts.values():
                    self.make(part)
            message = f"The {kind} is invalid: {_reason(matcher.get_error())}"
            raise InvalidRequest(message, _where(grammar))
        constraint = _Matcher(matcher, self._tokenizer.vocab_size, self._size, self._ends)
        constraint.allowed()  # builds the lexer here rather than while the model waits
        return constraint


def _hide_added(described: str) -> str:
    """Rename tags like `<think>` in a tokenizer's JSON, so that their text is spelled as text.

    Otherwise `"<think>"` in a schema would be written as that very token, which llguidance then
    refuses inside a text: there would be no way on.
    """
    content: dict[str, Any] = json.loads(described)
    names: dict[str, str] = {}
    for token in content.get("added_tokens", ()):
        plain = token["content"]
        if token.get("special") or _TAG.fullmatch(plain):
            token["content"] = names[plain] = _hidden(plain)
    model = content["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {names.get(text, text): i for text, i in model["vocab"].items()}
    else:  # Unigram: pairs of a text and its score
        model["vocab"] = [[names.get(text, text), score] for text, score in model["vocab"]]
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    return json.dumps(content, ensure_ascii=False)


def _hidden(tag: str) -> str:
    return tag[:1] + _MARK + tag[1:]


def _name_tags(lark: str) -> str:
    """Call tags in a Lark grammar, where they stand for their tokens, by their hidden names."""
    return _LARK_PARTS.sub(lambda part: _hidden(part[0]) if part["tag"] else part[0], lark)


def _where(grammar: Grammar) -> str:
    return _PARAM if isinstance(grammar, (JsonObject, Composed)) else grammar.where


def _compile(grammar: Grammar) -> tuple[str, str]:
    """What to call a grammar, and the same in llguidance's own form."""
    match grammar:
        case JsonSchema(schema, where):
            return "JSON schema", _json_grammar(checked(schema, where), JSON_OPTIONS)
        case JsonObject():
            # With no schema no name can be meant, so all escapes are welcome.
            space = {"whitespace_pattern": JSON_OPTIONS["whitespace_pattern"]}
            return "JSON schema", _json_grammar({"type": "object"}, space)
        case Regex(pattern=pattern):
            return "regular expression", LLMatcher.grammar_from_regex(pattern)
        case Lark(grammar=text):
            _check_lark(text, grammar.where)
            return "Lark grammar", LLMatcher.grammar_from_lark(_name_tags(text))
        case Composed(lark, parts):
            main = {"name": "main", "lark_grammar": lark}
            return "grammar", json.dumps(
                {"grammars": [main, *(_part(name, part) for name, part in parts.items())]}
            )


def _part(name: str, grammar: Grammar) -> dict[str, Any]:
    """A grammar that others refer to by a name."""
    _, source = _compile(grammar)
    if isinstance(grammar, Lark):
        return {"name": name, "lark_grammar": source}
    part: dict[str, Any] = json.loads(source)["grammars"][0]
    return part | {"name": name}


def _check_lark(text: str, where: str) -> None:
    """Refuse what would end the process, or go round the check of schemas."""
    plain = _LARK_PARTS.sub(lambda part: part["tag"] or "", text)
    if len(_DEFINITION.findall(plain)) > _MOST_DEFINITIONS:
        message = f"The Lark grammar has more than {_MOST_DEFINITIONS} rules and terminals."
        raise InvalidRequest(message, where)
    found = next((each for each in _DIRECTIVE.findall(plain) if each not in _DIRECTIVES), None)
    if found is not None:
        message = f"The Lark grammar has {found}; only {' and '.join(_DIRECTIVES)} are supported."
        raise InvalidRequest(message, where)


def _json_grammar(schema: dict[str, Any], options: dict[str, str]) -> str:
    # As text: the order of keys counts.
    return LLMatcher.grammar_from_json_schema(json.dumps(schema), options)  # type: ignore[arg-type]


def _reason(error: object) -> str:
    """The line that says what is wrong; the others quote the source, wrapped and with carets."""
    lines = [line.strip() for line in str(error).splitlines()] or [""]
    marker = "error: "
    reason = next((line[len(marker) :] for line in lines if line.startswith(marker)), lines[0])
    return reason.replace(_MARK, "").replace(r"\u{10ffff}", "")


class _Matcher:
    """One answer; see `constraint.Constraint`. End tokens are counted here, not by llguidance."""

    def __init__(self, matcher: LLMatcher, known: int, size: int, ends: NDArray[np.intp]) -> None:
        self._matcher = matcher
        self._known = known  # tokens that llguidance has; the model may have fewer or more
        self._size = size
        self._ends = ends
        self._bits = bitmasks.allocate_token_bitmask(1, known)
        self._read = 0  # advances that the matcher saw
        self._finished = 0  # advances by end tokens since
        self._mask: NDArray[np.bool_] | None = None  # of the present state

    def allowed(self) -> NDArray[np.bool_]:
        """See `Constraint.allowed`."""
        if self._mask is None:
            self._mask = self._compute_mask()
            self._mask.flags.writeable = False
        return self._mask

    def advance(self, token: int) -> None:
        """See `Constraint.advance`."""
        if token in self._ends and self.allowed()[token]:
            self._finished += 1
        elif self._finished or not self._consume(token):
            raise ValueError(f"Token {token} is not allowed here.")
        else:
            self._read += 1
        self._mask = None

    def roll_back(self, count: int) -> None:
        """See `Constraint.roll_back`."""
        if not 0 <= count <= self._read + self._finished:
            raise ValueError(f"{count} tokens cannot be undone.")
        if not count:
            return
        ends = min(count, self._finished)
        self._finished -= ends
        self._read -= count - ends
        self._mask = None
        if not self._matcher.rollback(count - ends):
            raise self._failure()

    def copy(self) -> Constraint:
        """See `Constraint.copy`."""
        other = _Matcher(self._matcher.deep_copy(), self._known, self._size, self._ends)
        other._read, other._finished, other._mask = self._read, self._finished, self._mask
        return other

    def forced(self, most: int) -> list[int]:
        """See `Constraint.forced`."""
        tokens: list[int] = []
        try:
            while len(tokens) < most and not self._finished:
                allowed = self.allowed()
                if np.count_nonzero(allowed) > 1:
                    break
                token = int(np.argmax(allowed))
                self.advance(token)
                tokens.append(token)
        finally:
            self.roll_back(len(tokens))
        return tokens

    def _consume(self, token: int) -> bool:
        if not 0 <= token < min(self._known, self._size):
            return False
        taken = self._matcher.try_consume_tokens([token])
        if self._matcher.is_error():
            raise self._failure()
        return taken == 1

    def _compute_mask(self) -> NDArray[np.bool_]:
        mask = np.zeros(self._size, np.bool_)
        if not self._finished and not self._matcher.is_stopped():
            bitmasks.fill_next_token_bitmask(self._matcher, self._bits)
            bits = np.unpackbits(self._bits[0].view(np.uint8), bitorder="little")
            common = min(self._known, self._size)
            mask[:common] = bits[:common]
        # llguidance allows an end token also where there is no way on.
        mask[self._ends] = self._finished > 0 or self._matcher.is_accepting()
        if not mask.any():
            raise self._failure()
        return mask

    def _failure(self) -> InvalidRequest:
        error = _reason(self._matcher.get_error())
        if error and not error.startswith("NoExtension"):
            return InvalidRequest(f"The grammar cannot be followed: {error}.", _PARAM)
        after = f"after {self._read} tokens" if self._read else "at all"
        return InvalidRequest(f"The grammar allows no token {after}.", _PARAM)
