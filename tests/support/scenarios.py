"""Ways in which a generation can go, for a `ScriptedEngine`; every protocol is held to each."""

from mtplx_engine.errors import EngineFailed
from mtplx_engine.events import Likelihood, PrefillProgress, ScoredToken
from mtplx_engine.testing import Scored, Script

CALL = '<tool_call>{"name": "time", "arguments": {"zone": "Asia/Tokyo"}}</tool_call>'
SCORED = Likelihood(7, "é", "é".encode(), -0.25)
LIKELY = Likelihood(8, "\ufffd", b"\xc3", float("-inf"))

SCENARIOS = {
    "text": Script(["Hel", "lo", " there"]),
    "unicode": Script(["naïve ", "日本語 ", "👩‍👩‍👧", "\u2028", ' "quoted"\\\n']),
    "reasoning": Script(["two", " plus", " two</think>", "four"], thinks=True),
    "reasoning twice": Script(["<think>a</think>b<thi", "nk>c</think>", "d"]),
    "only reasoning": Script(["hm", ", well"], thinks=True, reason="length"),
    "stop string": Script(["one, "], stop_sequence="two"),
    "length": Script(["a", "b"], reason="length"),
    "empty": Script([]),
    "long prompt": Script([PrefillProgress(10, 30), PrefillProgress(30, 30), "ok"]),
    "a call": Script(list(CALL)),
    "thoughts, text, two calls": Script(
        ["hm</think>", "Let me see.\n\n", CALL, "\n", *CALL], thinks=True
    ),
    "a call that is cut": Script(["Well ", CALL[:50]], reason="length"),
    "a second call that is cut at its mark": Script([*CALL, "\n<tool"], reason="length"),
    "a call that is none": Script(["<tool_call>{nonsense}</tool_call>", " is not a call"]),
    "a broken call": Script([CALL.replace("}}", "")]),
    "a failure": Script(["begun", EngineFailed("The engine has stopped: out of memory.")]),
    "scores": Script(
        [Scored("é", ScoredToken(SCORED, (SCORED, LIKELY))), Scored("", ScoredToken(LIKELY, ()))]
    ),
}
