"""Headline claims: their answers, and the rows of shipped headlines."""

import math

import pytest

from poolwise import registry
from poolwise.errors import InputError
from poolwise_reproductions import catalog
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.headlines import Headline, answer_headlines, read_headlines
from poolwise_reproductions.published import Claim, ClaimRow

NAMES = registry.names("reproductions")


def row(condition: str, spec: float | None, as_run: float | None = None) -> ClaimRow:
    claim = Claim("Figure 7", condition, "lead of FM", "", math.nan, "order", 0.0)
    measured = None if spec is None else Measured(spec)
    return ClaimRow(claim, measured, {} if as_run is None else {"as run": Measured(as_run)})


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        ([row("4 TB", 1), row("8 TB", 1)], "reproduced"),
        ([row("4 TB", -1, 1), row("8 TB", 1)], "under another reading"),  # all hold as run
        ([row("4 TB", -1, 1), row("8 TB", -1, -1)], "partly"),
        ([row("4 TB", -1), row("8 TB", -1)], "not"),
        ([row("4 TB", None), row("elsewhere", 1)], "cannot be tested"),
    ],
)
def test_answer_of_a_headline_follows_from_its_rows(rows: list[ClaimRow], answer: str) -> None:
    headline = Headline("FM leads", "abstract", "Figure 7", "4 TB|8 TB", "lead*")
    assert answer_headlines([headline], rows)[0].answer == answer


@pytest.mark.parametrize("name", NAMES)
def test_shipped_headlines_have_rows_or_a_reason(name: str) -> None:
    rows = [ClaimRow(claim, None) for claim in read_claims(catalog.find("claims", f"{name}.csv"))]
    headlines = read_headlines(catalog.find("headlines", f"{name}.csv"))
    assert len(headlines) >= 5
    for headline in headlines:
        assert bool(headline.artifact) == any(headline.rests_on(row) for row in rows), headline.claim


def test_headline_without_rows_and_reason_is_rejected(tmp_path) -> None:
    path = tmp_path / "headlines.csv"
    path.write_text("claim,where,artifact,condition,metric,why\nit wins,abstract,,,,\n", encoding="utf-8")
    with pytest.raises(InputError, match="needs a reason"):
        read_headlines(path)


@pytest.mark.parametrize("name", NAMES)
def test_every_paper_has_questions_for_its_authors(name: str) -> None:
    text = catalog.find("questions", f"{name}.txt").read_text(encoding="utf-8")
    assert len(text.splitlines()) >= 4
    assert all(line.rstrip().endswith((".", "?")) for line in text.splitlines())
