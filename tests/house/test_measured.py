"""What the pages say was measured is what was measured."""

import json
from pathlib import Path

from decode_tables import fill

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "decode.json"
PAGE = ROOT / "docs" / "how-it-works" / "speculative-decoding.md"


def test_the_page_shows_the_results_that_are_checked_in() -> None:
    page = PAGE.read_text(encoding="utf-8")
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else None
    assert page == fill(page, results), "run `hatch run plot:decode`"
