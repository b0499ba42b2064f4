"""Draws what the decoder's benchmarks found and writes it into the page about them.

`hatch run plot:decode` after

    MTPLX_BENCH_RESULTS=benchmarks/results/decode.json hatch run bench
"""

import json
from pathlib import Path
from typing import Any

import matplotlib
from decode_tables import KINDS, WAYS, Results, fill
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "decode.json"
PAGE = ROOT / "docs" / "how-it-works" / "speculative-decoding.md"
PLOT = PAGE.with_suffix(".svg")

# Stand-ins that become variables of a style sheet, which knows whether the page is dark.
INK, FAINT = "#010101", "#020202"
STYLE = """<style>
svg { --ink: #24292f; --faint: #d0d7de; }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --faint: #3d444d; } }
</style>
"""
# Of middle lightness, so that they stand out from white and from black.
COLOURS = {
    "plain": "#8b949e",
    "depth_1": "#7fb3e6",
    "depth_2": "#5596d8",
    "depth_3": "#3a78bf",
    "depth_4": "#2f5f9e",
    "adaptive": "#2da160",
    "adaptive_copy": "#e08a2b",
}
SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mtplx",  # the same names of clip paths in every run
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "axes.grid.axis": "y",
    "axes.grid": True,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def draw_speeds(axes: Axes, results: Results) -> None:
    """Bars by kind of text, plain decoding = 1; whiskers from the lowest to the highest turn."""
    width = 0.8 / len(WAYS)
    for index, (way, label) in enumerate(WAYS.items()):
        found: list[dict[str, Any]] = [results["classes"][kind]["ways"][way] for kind in KINDS]
        places = [i + (index - (len(WAYS) - 1) / 2) * width for i in range(len(KINDS))]
        ratios = [each["ratio"] for each in found]
        spread = [
            [each["ratio"] - each["lowest"] for each in found],
            [each["highest"] - each["ratio"] for each in found],
        ]
        axes.bar(places, ratios, 0.92 * width, color=COLOURS[way], label=label)
        if way != "plain":
            axes.errorbar(places, ratios, spread, fmt="none", ecolor=INK, elinewidth=0.7)
    axes.axhline(1.0, color=INK, linewidth=0.8)
    axes.set_xticks(range(len(KINDS)), list(KINDS.values()))
    axes.set_ylabel("tokens per second, plain = 1")
    axes.set_title("Speed by kind of text")
    axes.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.1), fontsize=8)


def draw_costs(axes: Axes, results: Results) -> None:
    """v(k), and beside it what k plain steps would cost."""
    costs = results["costs"]
    widths = sorted(int(width) for width in costs["verify"])
    measured = [costs["verify"][str(width)] for width in widths]
    colour = COLOURS["depth_3"]
    axes.plot(widths, measured, marker="o", markersize=3.5, color=colour, label="one pass, v(k)")
    label = "k plain steps"
    axes.plot(widths, widths, color=COLOURS["plain"], linestyle="--", linewidth=1, label=label)
    # Room above the measured points; k steps may leave the picture.
    axes.set_ylim(0, 1.5 * max(measured))
    axes.set_xlabel("tokens in the pass, k")
    axes.set_ylabel("time in plain steps")
    axes.set_title(f"Cost of a pass (a draft: {costs['draft']:.2f})")
    axes.legend(loc="lower right", fontsize=8)


def draw(results: Results) -> str:
    """The plot as SVG that is readable on a light page and on a dark one."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        draw_speeds(left, results)
        draw_costs(right, results)
        PLOT.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(PLOT, transparent=True, metadata={"Date": None})
    svg = PLOT.read_text(encoding="utf-8")
    for stand_in, variable in ((INK, "var(--ink)"), (FAINT, "var(--faint)")):
        svg = svg.replace(stand_in, variable)
    start = svg.index(">", svg.index("<svg")) + 1
    styled = f"{svg[:start]}\n{STYLE}{svg[start:].lstrip()}"
    return "".join(f"{line.rstrip()}\n" for line in styled.splitlines())


def main() -> None:
    """Write the plot and the page's section."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PLOT.write_text(draw(results), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(fill(page, results), encoding="utf-8")


if __name__ == "__main__":
    main()
