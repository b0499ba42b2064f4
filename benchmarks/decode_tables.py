"""From the results of the decoder's benchmarks to the section of a page that shows them.

Knows nothing but the JSON, so that a test can compare the page with it.
"""

from collections.abc import Iterable
from typing import Any

BEGIN = "<!-- measured: written by benchmarks/plot_decode.py -->"
END = "<!-- end of what is measured -->"

Results = dict[str, Any]

KINDS = {"prose": "prose", "code": "code", "json": "JSON", "copy": "copy"}
WAYS = {
    "plain": "plain",
    "depth_1": "depth 1",
    "depth_2": "depth 2",
    "depth_3": "depth 3",
    "depth_4": "depth 4",
    "adaptive": "adaptive",
    "adaptive_copy": "adaptive, copying",
}
WIDTHS = ("1", "2", "3", "4", "5", "6", "8", "12", "16")


def fill(page: str, results: Results | None) -> str:
    """The page with what lies between its markers written anew."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{section(results)}\n\n{END}{after}"


def section(results: Results | None) -> str:
    """What stands between the markers; says so when nothing was measured yet."""
    if results is None:
        return "Nothing has been measured yet."
    parts = [
        _where(results),
        "![Speed-up by kind of text, and cost of a pass by its width](speculative-decoding.svg)",
        "Tokens per second against plain decoding:",
        _speeds(results),
        "Tokens a round, and how often the draft at position 1, 2, ... stood once the ones before"
        " it had:",
        _acceptance(results),
        "Time of a round in plain steps, by depth:",
        _rounds(results),
        _costs(results),
        _table(["pass over k tokens", *WIDTHS], [["v(k)", *_verify(results)]]),
        _overheads(results),
        _same(results),
    ]
    return "\n\n".join(parts)


def _where(results: Results) -> str:
    machine, model, settings = results["machine"], results["model"], results["settings"]
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    return (
        f"{model['id']} in {model['dtype']}, greedy, {settings['tokens']} tokens an answer, medians"
        f" of {settings['turns']} turns. {machine['processor']}, {machine['cores']} cores,"
        f" {machine['system']}; {results['backend']}; {versions}; {results['date']}."
        f" One-minute load before the start: {machine['load']}."
    )


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ways(results: Results, kind: str) -> dict[str, Any]:
    ways: dict[str, Any] = results["classes"][kind]["ways"]
    return ways


def _speeds(results: Results) -> str:
    head = [
        "text",
        *list(WAYS.values())[1:],
        "adaptive against best fixed",
        "copying on against off",
    ]
    rows = []
    for kind, label in KINDS.items():
        found = results["classes"][kind]
        best = WAYS[found["best_fixed"]]
        rows.append(
            [
                label,
                *(f"{_ways(results, kind)[way]['ratio']:.2f}x" for way in list(WAYS)[1:]),
                f"{found['adaptive_against_best_fixed']:.2f}x ({best})",
                f"{found['copy_on_against_off']:.2f}x",
            ]
        )
    return _table(head, rows)


def _acceptance(results: Results) -> str:
    deepest = "depth_4"
    head = [
        "text",
        *(f"tokens a round, {WAYS[way]}" for way in ("depth_1", "depth_2", deepest)),
        "tokens a round, adaptive, copying",
        "drafts that stood, depth 4",
        "copies that stood",
    ]
    rows = []
    for kind, label in KINDS.items():
        ways = _ways(results, kind)
        copying = ways["adaptive_copy"]
        rows.append(
            [
                label,
                *(
                    f"{ways[way]['tokens_per_round']:.2f}"
                    for way in ("depth_1", "depth_2", deepest, "adaptive_copy")
                ),
                ", ".join(
                    f"{hits / seen:.2f}" if seen else "-"
                    for hits, seen in zip(
                        ways[deepest]["accepted"], ways[deepest]["judged"], strict=True
                    )
                ),
                f"{copying['copies_accepted']} of {copying['copied']}",
            ]
        )
    return _table(head, rows)


def _rounds(results: Results) -> str:
    fixed = [way for way in WAYS if way.startswith("depth_")]
    rows = [
        [label, *(f"{_ways(results, kind)[way]['round_in_plain_steps']:.2f}" for way in fixed)]
        for kind, label in KINDS.items()
    ]
    return _table(["text", *(WAYS[way] for way in fixed)], rows)


def _costs(results: Results) -> str:
    draft = results["costs"]["draft"]
    return f"A draft step costs c = {draft:.2f} plain steps, a pass over k tokens v(k):"


def _verify(results: Results) -> list[str]:
    return [f"{results['costs']['verify'][width]:.2f}" for width in WIDTHS]


def _overheads(results: Results) -> str:
    bare = results["rounds_against_bare_calls"]
    rounds = ", ".join(f"{bare[depth]:.2f}x at depth {depth}" for depth in sorted(bare, key=int))
    return (
        f"Plain decoding runs at {results['plain_against_mlx_lm']:.2f}x the speed of"
        f" `mlx_lm.stream_generate`. Against the bare model calls that a round needs, rounds run at"
        f" {rounds}."
    )


def _same(results: Results) -> str:
    same = total = 0
    for kind in KINDS:
        for name, way in _ways(results, kind).items():
            if name != "plain":
                same += way["same_as_plain"][0]
                total += way["same_as_plain"][1]
    return f"Of {total} answers with drafts, {same} were those of plain decoding word for word."
