"""Samples of the dialects whose arguments are JSON text."""

from collections.abc import Callable

from dialect_samples import Sample, broken, called, said

from mtplx_engine.chat.scanning import Parsed

ROME = '{"city": "Rome"}'
OSLO = '{"city": "Oslo", "days": 3}'
NESTED = '{"text": "a", "tags": ["red"], "place": {"east": true, "deep": [{"x": [1.5e3, null]}]}}'
UNICODE = '{"city": "Zürich 🏔️ \\u00e9"}'
QUOTES = '{"text": "say \\"hi\\" \\\\ }{ ]\\n", "place": {}}'

Samples = tuple[Sample, ...]


def weather(arguments: str, index: int = 0) -> tuple[Parsed, ...]:
    return called(index, "get_weather", arguments)


def usual(write: Callable[[str, str], str], marks: str, before: str = "Wait.") -> Samples:
    """What every dialect has to read.

    Args:
        write: Makes an answer that is a call, from a name and arguments.
        marks: Some of the dialect's own, to stand inside a string.
        before: Text before a call.
    """
    rome, marked = write("get_weather", ROME), f'{{"city": "{marks}"}}'
    cut = rome[: rome.index('me"}')]
    in_name = rome[: rome.index("weather")]
    half = broken(0, "get_weather", '{"city": "Ro')
    first = said(before) if before else ()
    return (
        Sample("single", rome, weather(ROME)),
        Sample("text around", f"{before}\n\n{rome}\n Ok. ", first + weather(ROME) + said("Ok. ")),
        Sample("nested", write("save-note", NESTED), called(0, "save-note", NESTED)),
        Sample("unicode", write("get_weather", UNICODE), weather(UNICODE)),
        Sample("quotes", write("save-note", QUOTES), called(0, "save-note", QUOTES)),
        Sample("own marks", write("get_weather", marked), weather(marked)),
        Sample("no arguments", write("now", "{}"), called(0, "now", "{}")),
        Sample("array", write("now", "[1]"), said(write("now", "[1]"))),
        Sample("cut in the name", in_name, said(in_name), limited=True),
        Sample("cut in arguments", f"{before}\n{cut}", first + half, limited=True),
        Sample("ended in arguments", cut, half + said(cut)),
        Sample(
            "cut in a value",
            (on := write("now", '{"a": true'))[: on.index("true") + 3],
            broken(0, "now", '{"a": '),
            limited=True,
        ),
    )


def _tagged() -> Samples:
    def write(name: str, arguments: str) -> str:
        return one(f'"name": "{name}", "arguments": {arguments}')

    def one(members: str) -> str:
        return f"<tool_call>\n{{{members}}}\n</tool_call>"

    rome, swapped = write("get_weather", ROME), one(f'"arguments": {OSLO}, "name": "get_weather"')
    text = write("get_weather", '"{\\"city\\": \\"Rome\\"}"')
    behind = one('"name": "now", "arguments": {}, "x": no')
    others = one(f'"id": 7, "name": "get_weather", "arguments": {ROME}, "x": []')
    odd = write("get_weather", '{"city" "Rome"}')
    wrong = one('"arguments": {}'), one('"name": "\\ud800"'), "<tool_call>no</tool_call> "
    return (
        *usual(write, "</tool_call><tool_call>"),
        Sample("parallel", f"{rome}\n{swapped}", weather(ROME) + weather(OSLO, 1)),
        Sample("missing arguments", one('"name": "now"'), called(0, "now", "{}")),
        Sample("null", write("now", "null"), called(0, "now", "{}")),
        Sample("arguments as text", text, weather(ROME)),
        Sample("other keys", others, weather(ROME)),
        Sample("malformed", odd, broken(0, "get_weather", '{"city" ') + said(odd)),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
        Sample("cut in the mark", "a <tool_ca", said("a <tool_ca"), limited=True),
        Sample("cut after the name", (cut := '<tool_call>{"name": "now"'), said(cut)),
        Sample("missing closer", rome[: -len("\n</tool_call>")], weather(ROME)),
        Sample("cut in the closer", rome[:-4], weather(ROME), limited=True),
        Sample("bad key", behind, called(0, "now", "{}") + said(', "x": no}\n</tool_call>')),
        Sample("missing brace", rome[: -len("}\n</tool_call>")], weather(ROME), limited=True),
        Sample("no call after one", f"{rome}<tool_call>no", weather(ROME) + said("<tool_call>no")),
    )


def _mistral() -> Samples:
    def write(name: str, arguments: str) -> str:
        return f"[TOOL_CALLS]{name}[ARGS]{arguments}"

    rome, odd = write("get_weather", ROME), write("get_weather", '{"city": Rome}')
    both = f"{rome}{write('get_weather', OSLO)}"
    called_by_id = f"[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]{ROME}"
    in_list = f'[TOOL_CALLS] [{{"name": "get_weather", "arguments": {ROME}}}]'
    wrong = "[TOOL_CALLS]now[ARGS]", "[TOOL_CALLS] are marks", "[TOOL_CALLS]now[AR"
    return (
        *usual(write, "[TOOL_CALLS]now[ARGS]{}"),
        Sample("parallel", both, weather(ROME) + weather(OSLO, 1)),
        Sample("with an id", called_by_id, weather(ROME)),
        Sample("nothing between", f"[TOOL_CALLS]get_weather{ROME}", weather(ROME)),
        Sample("spaces", f"[TOOL_CALLS] get_weather [ARGS] {ROME}", weather(ROME)),
        Sample("malformed", odd, broken(0, "get_weather", '{"city": ') + said(odd)),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
        Sample("in a list", in_list, weather(ROME)),
    )


def _mistral_list() -> Samples:
    def write(name: str, arguments: str) -> str:
        return f'[TOOL_CALLS] [{{"name": "{name}", "arguments": {arguments}}}]'

    rome, oslo = write("get_weather", ROME), f'{{"name": "get_weather", "arguments": {OSLO}'
    both, cut = f'{rome[:-1]}, {oslo}, "id": "a1B2c3D4e"}}]', ", " + oslo[: oslo.index('lo"')]
    half = broken(1, "get_weather", '{"city": "Os')
    odd, empty = write("get_weather", '{"city": "Rome",}'), "[TOOL_CALLS] []"
    return (
        *usual(write, "[TOOL_CALLS] []}]"),
        Sample("parallel", both, weather(ROME) + weather(OSLO, 1)),
        Sample("missing arguments", '[TOOL_CALLS][{"name":"now"}]', called(0, "now", "{}")),
        Sample("an object alone", '[TOOL_CALLS]{"name":"now"}', called(0, "now", "{}")),
        Sample("malformed", odd, broken(0, "get_weather", '{"city": "Rome",') + said(odd)),
        Sample("empty", empty, said(empty)),
        Sample("cut in the second", rome[:-1] + cut, weather(ROME) + half, limited=True),
        Sample("ended in the second", rome[:-1] + cut, weather(ROME) + half + said(cut)),
        Sample("missing closer", rome[:-2], weather(ROME), limited=True),
        Sample("by name", f"[TOOL_CALLS]get_weather[ARGS]{ROME}", weather(ROME)),
    )


def _deepseek(form: str) -> Samples:
    begin, end = (
        "<\uff5ctool\u2581calls\u2581begin\uff5c>",
        "<\uff5ctool\u2581calls\u2581end\uff5c>",
    )
    call_begin, call_end = begin.replace("calls", "call"), end.replace("calls", "call")

    def one(name: str, arguments: str) -> str:
        body = form.replace("NAME", name).replace("ARGUMENTS", arguments)
        return f"{call_begin}{body}{call_end}"

    def write(name: str, arguments: str) -> str:
        return f"{begin}{one(name, arguments)}{end}"

    rome, oslo = one("get_weather", ROME), one("get_weather", OSLO)
    both = f"{begin}{rome}\n{oslo}{end}"
    odd, empty = write("get_weather", '{"city": "Rome",}'), f"{begin}no{end}"
    cut = both[: both.index('lo"')]
    half = broken(1, "get_weather", '{"city": "Os')
    whole = write("get_weather", ROME)
    return (
        *usual(write, f"{call_end}{end}```"),
        Sample("parallel", both, weather(ROME) + weather(OSLO, 1)),
        Sample("missing arguments", write("now", ""), called(0, "now", "{}")),
        Sample(
            "arguments as text", write("get_weather", '"{\\"city\\": 1}"'), weather('{"city": 1}')
        ),
        Sample("no section", rome, weather(ROME)),
        Sample("malformed", odd, broken(0, "get_weather", '{"city": "Rome",') + said(odd)),
        Sample(
            "ended in the second", cut, weather(ROME) + half + said(cut[len(begin + rome) + 1 :])
        ),
        Sample("no call", empty, said(empty)),
        Sample("cut in the second", cut, weather(ROME) + half, limited=True),
        Sample("missing closer", whole[: whole.index("}") + 1], weather(ROME)),
    )


def _kimi() -> Samples:
    def one(call_id: str, arguments: str) -> str:
        begin = f"<|tool_call_begin|>{call_id}<|tool_call_argument_begin|>"
        return f"{begin}{arguments}<|tool_call_end|>"

    def section(calls: str) -> str:
        return f"<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>"

    def write(name: str, arguments: str) -> str:
        return section(one(f"functions.{name}:0", arguments))

    rome, oslo = one("functions.get_weather:0", ROME), one("functions.get_weather:11", OSLO)
    spaced = section(f" {one(' functions.get_weather:0 ', f' {ROME} ')}\n")
    odd, whole = write("get_weather", "{'city': 'Rome'}"), write("get_weather", ROME)
    nameless = one("", "{}") + "<|tool_calls_section_end|>"
    both = f"<|tool_calls_section_begin|>{rome}\n{nameless}"
    wrong = section(one("", "{}")), section(""), whole[: whole.index("ment_begin")]
    return (
        *usual(write, "<|tool_call_end|><|tool_calls_section_end|>"),
        Sample("parallel", section(rome + oslo), weather(ROME) + weather(OSLO, 1)),
        Sample("no second call", both, weather(ROME) + said(nameless)),
        Sample("spaces", spaced, weather(ROME)),
        Sample("name alone", section(one("get_weather", ROME)), weather(ROME)),
        Sample("no section", rome, weather(ROME)),
        Sample("missing arguments", write("now", ""), called(0, "now", "{}")),
        Sample("malformed", odd, broken(0, "get_weather", "{") + said(odd)),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
        Sample("missing closer", whole[: whole.index("}") + 1], weather(ROME)),
    )


def _harmony() -> Samples:
    def one(recipient: str, arguments: str) -> str:
        return f"<|channel|>commentary to={recipient} <|constrain|>json<|message|>{arguments}"

    def write(name: str, arguments: str) -> str:
        return one(f"functions.{name}", arguments)

    start = "<|start|>assistant"
    rome, odd = write("get_weather", ROME), write("get_weather", '{"city"}')
    before = f" to=functions.get_weather<|channel|>commentary json<|message|>{ROME}"
    wait = f"<|channel|>commentary<|message|>Wait.<|end|>{start}"
    final = "<|channel|>final<|message|>"
    wrong = (
        "Hello, to=you.",
        "See to=functions.f in it",
        "<|channel|>x<|message|>Hi",
        write("now", ""),
        one("python", "print(1)"),
    )
    return (
        *usual(write, "<|call|><|end|><|start|>"),
        Sample("recipient first", f"{start}{before}", weather(ROME)),
        Sample("recipient at the beginning", before, weather(ROME)),
        Sample("its end", f"{rome}<|call|>", weather(ROME)),
        Sample("parallel", f"{rome}<|call|>{start}{before}", weather(ROME) + weather(ROME, 1)),
        Sample("no type", rome.replace(" <|constrain|>json", ""), weather(ROME)),
        Sample("no space", rome.replace(" <|constrain|>", "<|constrain|>"), weather(ROME)),
        Sample("no function", one("browser.open", "{}"), called(0, "browser.open", "{}")),
        Sample("text after", f"{rome}<|end|>{start}{final}Hi", weather(ROME) + said("Hi")),
        Sample("preamble", f"{wait}{rome}", said("Wait.") + weather(ROME)),
        Sample("answer", f"{final}Hi <|x|> 1 < 2 \n", said("Hi <|x|> 1 < 2 \n")),
        Sample("answer after thoughts", f"{start}{final}Hi<|return|>", said("Hi")),
        Sample("thoughts twice", f"{start}{start}{final}Hi", said("Hi")),
        Sample("two messages", f"{wait}{final}Hi", said("Wait.\n\nHi")),
        Sample("malformed", odd, broken(0, "get_weather", '{"city"') + said(odd)),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
        Sample("cut in the frame", f"{wait}<|channel|>fin", said("Wait."), limited=True),
    )


def _llama3() -> Samples:
    def write(name: str, arguments: str) -> str:
        return f'{{"name": "{name}", "parameters": {arguments}}}'

    rome = write("get_weather", ROME)
    oslo = f'{{"type": "function", "name": "get_weather", "parameters": {OSLO}}}'
    odd = write("get_weather", '{"city": Rome}')
    swapped = f'{{"parameters": {ROME}, "name": "get_weather"}}'
    wrong = (
        '{"a": 1}\n\nHello',
        ' \n{"name": "Ann", "age": 3} ',
        '{"name": "Ann", "parameters": {}}',
        '{"name": "now"}',
        f'{{"name": "now", "age": 3, "parameters": {ROME}}}',
        "{",
        "{}",
        "{name} is {",
        " [1] {",
        "  Hello ",
        f"See {rome}",
        '<|python_tag|>f("x")',
    )
    return (
        *usual(write, '<|python_tag|>; {\\"name', before=""),
        Sample("after the tag", f"<|python_tag|>{rome}", weather(ROME)),
        Sample("parallel", f"{rome}; {oslo}", weather(ROME) + weather(OSLO, 1)),
        Sample("on lines", f"\n{rome}\n{oslo}\n", weather(ROME) + weather(OSLO, 1)),
        Sample("cut in the tag", " <|pyth", said(" <|pyth"), limited=True),
        Sample("text after a semicolon", f"{rome}; ok", weather(ROME) + said("; ok")),
        Sample("data after", f'{rome}\n{{"a": 1}}', weather(ROME) + said('{"a": 1}')),
        Sample("arguments", rome.replace("parameters", "arguments"), weather(ROME)),
        Sample("arguments first", swapped, weather(ROME)),
        Sample("malformed", odd, broken(0, "get_weather", '{"city": ') + said(odd)),
        *(Sample(f"no call: {text}", text, said(text)) for text in wrong),
        Sample("missing closer", rome[:-1], weather(ROME), limited=True),
    )


SAMPLES = {
    "json_object": _tagged(),
    "mistral": _mistral(),
    "mistral_list": _mistral_list(),
    "deepseek_v3": _deepseek("function<\uff5ctool\u2581sep\uff5c>NAME\n```json\nARGUMENTS\n```"),
    "deepseek_v31": _deepseek("NAME<\uff5ctool\u2581sep\uff5c>ARGUMENTS"),
    "kimi": _kimi(),
    "harmony": _harmony(),
    "llama3": _llama3(),
}
TEMPLATES = {
    "json_object": "{{ '<tool_call>' }}{{ call | tojson }}{{ '</tool_call>' }}",
    "mistral": "{{ '[TOOL_CALLS]' + call.name + '[ARGS]' + arguments }}",
    "mistral_list": "{{ '[TOOL_CALLS] [' }}{{ calls }}{{ ']' }}",
    "deepseek_v3": "{{ '<\uff5ctool\u2581sep\uff5c>' + call.name + '\\n```json\\n' }}",
    "deepseek_v31": "{{ call.name + '<\uff5ctool\u2581sep\uff5c>' + arguments }}",
    "kimi": "<|tool_calls_section_begin|>{{ id }}<|tool_call_argument_begin|>{{ arguments }}",
    "harmony": "{{ '<|start|>assistant to=' + name + '<|channel|>commentary json' }}<|call|>",
    "llama3": '{{ \'Write {"name": function name, "parameters": its arguments}.\' }}',
}
