"""Samples of the dialects whose arguments are not JSON text: in tags, or in other notations."""

from collections.abc import Callable

from dialect_samples import Sample, broken, called, said

from mtplx_engine.chat.scanning import Parsed

ROME = '{"city": "Rome"}'
OSLO = '{"city": "Oslo", "days": 3}'
DEEP = '{"east": true, "deep": [{"x": [1.5e3, null]}]}'

Samples = tuple[Sample, ...]
Write = Callable[..., str]


def weather(arguments: str, index: int = 0) -> tuple[Parsed, ...]:
    return called(index, "get_weather", arguments)


def note(arguments: str) -> tuple[Parsed, ...]:
    return called(0, "save-note", arguments)


def usual(
    write: Write, string: Callable[[str], str], marks: str, end: str, before: str = "Wait."
) -> Samples:
    """What every dialect has to read.

    Args:
        write: Makes an answer that is a call, from a name and keywords with texts of values.
        string: Makes the text of a value that is a string.
        marks: Some of the dialect's own, to stand inside a string.
        end: What a call ends with.
        before: Text before a call.
    """
    rome, odd = write("get_weather", city=string("Rome")), string('"é"\t\\\n Zürich 🏔️')
    oslo = write("get_weather", city=string("Oslo"), days="3")
    wordy = write("get_weather", days="True")
    nested = write("save-note", text=string("a"), tags='["red"]', place=DEEP)
    cut, in_name = rome[: rome.index("Rome") + 2], rome[: rome.index("weather")]
    marked = write("get_weather", city=string(marks))
    half = broken(0, "get_weather", '{"city": "Ro')
    whole = rome[: rome.rindex(end) + len(end)]
    first = said(before) if before else ()
    return (
        Sample("single", rome, weather(ROME)),
        Sample("two values", oslo, weather(OSLO)),
        Sample("text around", f"{before}\n\n{rome}\n Ok. ", first + weather(ROME) + said("Ok. ")),
        Sample("nested", nested, note(f'{{"text": "a", "tags": ["red"], "place": {DEEP}}}')),
        Sample(
            "odd characters",
            write("save-note", text=odd),
            note('{"text": "\\"é\\"\\t\\\\\\n Zürich 🏔️"}'),
        ),
        Sample("own marks", marked, weather(f'{{"city": "{marks}"}}')),
        Sample("an empty string", write("save-note", text=string("")), note('{"text": ""}')),
        Sample("no arguments", write("now"), called(0, "now", "{}")),
        Sample("cut in the name", in_name, said(in_name), limited=True),
        Sample("cut in arguments", cut, half, limited=True),
        Sample("ended in arguments", cut, half + said(cut)),
        Sample(
            "cut in a value",
            wordy[: wordy.index("True") + 3],
            broken(0, "get_weather", '{"days": '),
            limited=True,
        ),
        Sample(
            "cut before the end",
            whole.removesuffix(end),
            broken(0, "get_weather", '{"city": "Rome"'),
            limited=True,
        ),
        Sample("missing closer", whole, weather(ROME), limited=True),
    )


def _qwen() -> Samples:
    def inside(name: str, **values: str) -> str:
        lines = [f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items()]
        return f"<function={name}>\n{''.join(lines)}</function>"

    def write(name: str, **values: str) -> str:
        return f"<tool_call>\n{inside(name, **values)}\n</tool_call>"

    rome, oslo = write("get_weather", city="Rome"), write("get_weather", city="Oslo", days="3")
    alone = inside("get_weather", city="Rome")
    odd = rome.replace("</parameter>\n", "</parameter> and")
    wrong = (
        "<tool_call> and <function=",
        "<function=now> is a tag",
        "<tool_call>\n<function=\n>",
        "<tool_call>\n<function=>\n</function>",
        "<function=now>\n<parameter=\n",
    )
    return (
        *usual(write, str, "<tool_call><function=now></function>", "</function>"),
        Sample("parallel", f"{rome}\n{oslo}", weather(ROME) + weather(OSLO, 1)),
        Sample("no outer tags", f"Wait.\n{alone}", said("Wait.") + weather(ROME)),
        Sample("no outer tag before", f"{alone}\n</tool_call>", weather(ROME)),
        Sample("no space", rome.replace("\n", ""), weather(ROME)),
        Sample("no end of a value", oslo.replace("\n</parameter>", ""), weather(OSLO)),
        Sample("no end of the function", rome.replace("</function>\n", ""), weather(ROME)),
        Sample(
            "line feeds", write("save-note", text="\n a \n\n"), note('{"text": "\\n a \\n\\n"}')
        ),
        Sample(
            "a tag in a line",
            write("save-note", text="x</function><parameter=y>"),
            note('{"text": "x</function><parameter=y>"}'),
        ),
        Sample("no number", write("get_weather", days="few"), weather('{"days": "few"}')),
        Sample("unknown", write("f", x="5"), called(0, "f", '{"x": "5"}')),
        Sample("malformed", odd, broken(0, "get_weather", '{"city": "Rome"') + said(odd)),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
    )


def _glm() -> Samples:
    def write(name: str, **values: str) -> str:
        tags = "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n"
        lines = [tags.format(key, value) for key, value in values.items()]
        return f"<tool_call>{name}\n{''.join(lines)}</tool_call>"

    rome, oslo = write("get_weather", city="Rome"), write("get_weather", city="Oslo", days="3")
    odd = rome.replace("<arg_value>", "")
    wrong = (
        "<tool_call> is a tag",
        "<tool_call></tool_call>",
        "<tool_call>\n<arg_key>a</arg_key>",
        "<tool_call>nowhere\ncity</arg_key>",
        "<tool_call>else</arg_key>\n<arg_value>",
    )
    return (
        *usual(write, str, "<tool_call></arg_key></tool_call>", "</tool_call>"),
        Sample("parallel", f"{rome}\n{oslo}", weather(ROME) + weather(OSLO, 1)),
        Sample("no space", rome.replace("\n", "") * 2, weather(ROME) + weather(ROME, 1)),
        Sample("a line feed before", rome.replace("<tool_call>", "<tool_call>\n"), weather(ROME)),
        Sample("line feeds", write("save-note", text="\na\n"), note('{"text": "\\na\\n"}')),
        Sample("no tag before a key", rome.replace("<arg_key>", ""), weather(ROME)),
        Sample("nothing before a key", rome.replace("\n<arg_key>", ""), weather(ROME)),
        Sample("no end of a value", oslo.replace("</arg_value>", ""), weather(OSLO)),
        Sample("malformed", odd, said(odd)),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
    )


def _minimax() -> Samples:
    def one(name: str, **values: str) -> str:
        lines = [f'<parameter name="{key}">{value}</parameter>\n' for key, value in values.items()]
        return f'<invoke name="{name}">\n{"".join(lines)}</invoke>\n'

    def section(calls: str) -> str:
        return f"<minimax:tool_call>\n{calls}</minimax:tool_call>"

    def write(name: str, **values: str) -> str:
        return section(one(name, **values))

    rome, oslo = one("get_weather", city="Rome"), one("get_weather", city="Oslo", days="3")
    odd = '<invoke name="now">\n{}</invoke>\n'
    cut = section(rome + oslo)
    wrong = "<minimax:tool_call> is a tag", section(""), section(odd)
    return (
        *usual(write, str, "<invoke></invoke>", "</invoke>"),
        Sample("parallel", section(rome + oslo), weather(ROME) + weather(OSLO, 1)),
        Sample(
            "no space", section(rome + oslo).replace("\n", ""), weather(ROME) + weather(OSLO, 1)
        ),
        Sample("line feeds", write("save-note", text="\na\n"), note('{"text": "\\na\\n"}')),
        Sample("no end of a value", section(oslo.replace("</parameter>", "")), weather(OSLO)),
        Sample("no end of a call", section(rome.replace("</invoke>\n", "")), weather(ROME)),
        Sample(
            "malformed second",
            section(rome + odd),
            weather(ROME) + said(f"{odd}</minimax:tool_call>"),
        ),
        Sample(
            "cut in the second",
            cut[: cut.index("lo<")],
            weather(ROME) + broken(1, "get_weather", '{"city": "Os'),
            limited=True,
        ),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
    )


def _python_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def _python(begin: str, end: str, before: str) -> Samples:
    def one(name: str, **values: str) -> str:
        return f"{name}({', '.join(f'{key}={value}' for key, value in values.items())})"

    def write(name: str, **values: str) -> str:
        return f"{begin}[{one(name, **values)}]{end}"

    rome, oslo = write("get_weather", city='"Rome"'), one("get_weather", city="'Oslo'", days="3")
    both = rome.replace("]", f", {oslo}]")
    spaced = f"{begin}[ get_weather ( city = 'Oslo' ,\n days = 3 , ) ] {end}"
    odd, thrice = write("get_weather", city="Rome"), write("now", x='"""a"\n"b"""', y="''")
    literals = write("now", x="[True, None, -0x10, ('a',), {'b': {2: .5}}]")
    as_json = '{"x": [true, null, -16, ["a"], {"b": {"2": 0.5}}]}'
    positional, cut = write("now", x="1, 2"), both[: both.index("lo'")]
    wrong = (
        f"{begin}[1, 2]",
        f"{begin}[link](now)",
        f"{begin}[now]{end}",
        f"{begin}[]{end}",
        f"{begin}[(x=1)]{end}",
        f"{begin}[now, now()]{end}",
    )
    return (
        *usual(write, _python_string, "]<|tool_call_end|>", ")", before),
        Sample("parallel", both, weather(ROME) + weather(OSLO, 1)),
        Sample("spaces", spaced, weather(OSLO)),
        Sample("literals", literals, called(0, "now", as_json)),
        Sample("quotes thrice", thrice, called(0, "now", '{"x": "a\\"\\n\\"b", "y": ""}')),
        Sample("malformed", odd, broken(0, "get_weather", '{"city": ') + said(odd)),
        Sample("no key", positional, broken(0, "now", '{"x": 1, "2"') + said(positional)),
        Sample(
            "cut in the second",
            cut,
            weather(ROME) + broken(1, "get_weather", '{"city": "Os'),
            limited=True,
        ),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
    )


def _lfm2() -> Samples:
    begin, end = "<|tool_call_start|>", "<|tool_call_end|>"
    objects = f'{begin}[{{"name": "get_weather", "arguments": {ROME}}}]{end}'
    return (
        *_python(begin, end, "Wait."),
        Sample("objects", objects, weather(ROME)),
        Sample("unknown", f"{begin}[f(x=1)]{end}", called(0, "f", '{"x": 1}')),
        Sample("no list", (text := f"{begin}now(){end}"), said(text)),
    )


def _llama() -> Samples:
    rome = '[get_weather(city="Rome")]'
    wrong = "[f(x=1)]", f"See {rome}", "[1] now()", "[", '[{"name": "f", "arguments": {}}]'
    return (
        *_python("", "", ""),
        Sample("marks", f"<|python_start|>{rome}<|python_end|>", weather(ROME)),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
    )


def _gemma(begin: str, end: str, quote: str) -> Samples:
    def write(name: str, **values: str) -> str:
        inside = ",".join(f"{key}:{value}" for key, value in values.items())
        return f"{begin}call:{name}{{{inside}}}{end}"

    def string(text: str) -> str:
        return f"{quote}{text}{quote}"

    rome = write("get_weather", city=string("Rome"))
    oslo = write("get_weather", city=string("Oslo"), days="3")
    spaced = f"{begin} call:get_weather {{ city : {string('Oslo')} , days : 3 }}\n{end}"
    own = write("save-note", place=f"{{{string('east')}:true,deep:[{{x:[1.5e3,None]}}]}}")
    odd, cut = write("get_weather", city="Rome"), (rome + oslo)[: -len(f"lo{quote},days:3}}{end}")]
    wrong = f"{begin} is a mark", f"{begin}call:{{}}{end}", f"{begin}call:now{end}"
    return (
        *usual(write, string, f"{begin}{end}{{}},", "}"),
        Sample("parallel", rome + oslo, weather(ROME) + weather(OSLO, 1)),
        Sample("spaces", spaced, weather(OSLO)),
        Sample("own quotes within", own, note(f'{{"place": {DEEP}}}')),
        Sample("quotes", write("get_weather", city='"Rome"'), weather(ROME)),
        Sample("malformed", odd, broken(0, "get_weather", '{"city": ') + said(odd)),
        Sample(
            "cut in the second",
            cut,
            weather(ROME) + broken(1, "get_weather", '{"city": "Os'),
            limited=True,
        ),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
    )


SAMPLES = {
    "qwen_xml": _qwen(),
    "glm": _glm(),
    "minimax": _minimax(),
    "lfm2": _lfm2(),
    "llama_pythonic": _llama(),
    "gemma4": _gemma("<|tool_call>", "<tool_call|>", '<|"|>'),
    "function_gemma": _gemma("<start_function_call>", "<end_function_call>", "<escape>"),
}
TEMPLATES = {
    "qwen_xml": "<tool_call>\\n<function={{ name }}>\\n<parameter={{ key }}>\\n</tool_call>",
    "glm": "<tool_call>{{ name }}<arg_key>{{ key }}</arg_key><arg_value></tool_call>",
    "minimax": '<minimax:tool_call>\\n<invoke name="{{ name }}">\\n<parameter name="{{ key }}">',
    "lfm2": "<|im_start|>system\\nList of tools: {{ tools | tojson }}<|im_end|>",
    "llama_pythonic": "Write [func_name1(params_name1=params_value1)].",
    "gemma4": "<|tool_call>call:{{ name }}{{ '{' }}{{ key }}:<|\"|>{{ value }}<|\"|>",
    "function_gemma": "<start_function_call>call:{{ name }}{{ key }}:<escape>{{ value }}<escape>",
}
