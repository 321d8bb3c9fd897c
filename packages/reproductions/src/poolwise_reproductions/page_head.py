"""Head of the page of a reproduction: the paper, the result, failed claims and their causes, command, time and hashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from poolwise.hashing import digest
from poolwise.presentation.answer import DecisionCard
from poolwise_reproductions import catalog
from poolwise_reproductions.causes import pattern
from poolwise_reproductions.figure_scripts import expected
from poolwise_reproductions.headlines import (
    OURS,
    SPEC,
    Headline,
    HeadlineAnswer,
    answer_headlines,
    count_answers,
    count_holding,
    readings_of,
)
from poolwise_reproductions.papers import read_paper
from poolwise_reproductions.published import UNEXPLAINED, ClaimRow

FAILURES = 3
"""Number of failures in the head."""
_HASH_DIGITS = 16
_ORDER = {"not": 0, "partly": 1, "under another reading": 2, "undetermined": 3}


@dataclass(frozen=True)
class ClaimFailure:
    """A claim of the paper that is not reproduced, with the number of failing rows and their most frequent cause."""

    claim: str
    where: str
    failing: int
    judged: int
    cause: str
    basis: str

    @property
    def sentence(self) -> str:
        """The failure in one sentence."""
        why = f"{self.cause} ({self.basis})" if self.cause else "the cause is unknown"
        rows = f"{self.failing} of {self.judged} rows {'fails' if self.failing == 1 else 'fail'}"
        return f"{self.claim} ({self.where}): {'its only row fails' if self.judged == 1 else rows}; {why}."


def tested_claims(headlines: Sequence[Headline], rows: Sequence[ClaimRow]) -> list[HeadlineAnswer]:
    """Return the answers to the paper's claims, without those to claims that we add."""
    return [answer for answer in answer_headlines(headlines, rows) if answer.headline.where != OURS]


def result_sentence(headlines: Sequence[Headline], rows: Sequence[ClaimRow]) -> str:
    """Return how many of the tested claims are reproduced; "" without claims."""
    answers = [answer.answer for answer in tested_claims(headlines, rows)]
    return f"{count_answers(answers)} tested claims are reproduced." if answers else ""


def claims_reproduced(headlines: Sequence[Headline], rows: Sequence[ClaimRow]) -> str:
    """Return the count for titles: "5 of 9 claims reproduced"; "" without tested claims."""
    answers = [answer.answer for answer in tested_claims(headlines, rows)]
    return f"{count_answers(answers)} claims reproduced" if answers else ""


def failures_of(headlines: Sequence[Headline], rows: Sequence[ClaimRow]) -> list[ClaimFailure]:
    """Return the most important claims that fail, one for each cause.

    Claims without a row that holds come first, then claims of the abstract, then those with the most failing rows.
    """
    ranked = []
    for answer in tested_claims(headlines, rows):
        mine = [row for row in rows if answer.headline.rests_on(row)]
        failing = [row for row in mine if row.verdict == "fails"]
        if answer.answer in _ORDER and failing:
            judged = answer.counts[SPEC][1]
            inside = "abstract" not in answer.headline.where.lower()
            ranked.append((_ORDER[answer.answer], inside, -len(failing), _failure(answer.headline, failing, judged)))
    ordered = [failure for *_, failure in sorted(ranked, key=lambda item: item[:3])]
    causes = dict.fromkeys(pattern(failure.cause) for failure in ordered)
    return [next(each for each in ordered if pattern(each.cause) == cause) for cause in causes][:FAILURES]


def _failure(headline: Headline, failing: Sequence[ClaimRow], judged: int) -> ClaimFailure:
    count = Counter(pattern(row.cause) for row in failing)
    cause = max(count, key=lambda each: (bool(each) and not each.startswith(UNEXPLAINED), count[each]))
    row = next(row for row in failing if pattern(row.cause) == cause)
    first = row.cause.split(". ")[0].rstrip(".")
    return ClaimFailure(headline.claim, headline.where, len(failing), judged, first, row.basis)


def row_counts(rows: Sequence[ClaimRow]) -> str:
    """Return how many testable rows of the paper hold under each reading, and how many are undetermined."""
    mine = [row for row in rows if row.claim.kind == "paper"]
    held = [(reading, *count_holding(mine, reading)) for reading in readings_of(rows)]
    parts = [f"{holds} of {judged}{'' if reading == SPEC else f' {reading}'}" for reading, holds, judged in held]
    undetermined = sum(row.verdict == "undetermined" for row in mine)
    return (
        f"{', '.join(parts)} testable rows of the paper hold; {undetermined} {'is' if undetermined == 1 else 'are'} "
        "undetermined. A row holds or fails if its whole 95 % interval over seeds does."
    )


def recorded_time(name: str) -> str:
    """Return the CPU time of a full run, or bounds on it derived from the commands of single figures, which may share runs."""
    slowest: dict[str, float] = {}
    for script in expected(name).values():
        slowest[script.command] = max(script.seconds, slowest.get(script.command, 0.0))
    whole = slowest.pop(f"poolwise reproduce {name}", None)
    if whole is not None:
        return f"about {_time(whole)} of CPU time on one core"
    least, most = _time(max(slowest.values())), _time(sum(slowest.values()))
    limits = least if least == most else f"{least} to {most}"
    return f"{limits} of CPU time on one core for the figures, which share runs; rows without a figure add to it"


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{seconds / 60:.0f} minutes"


def hashes(name: str, provenance: Mapping[str, str]) -> str:
    """Return the SHA-256 of the code that ran, if it is known, and of the claims file."""
    claims = digest(catalog.find("claims", f"{name}.csv").read_bytes().decode())
    source = provenance.get("sources_sha256", "")
    code = [f"code {source[:_HASH_DIGITS]}"] if source else []
    return ", ".join([*code, f"claims {claims[:_HASH_DIGITS]}"]) + f" (first {_HASH_DIGITS} digits of the SHA-256)"


def page_head(
    name: str, headlines: Sequence[Headline], rows: Sequence[ClaimRow], provenance: Mapping[str, str]
) -> DecisionCard:
    """Return the head that the pages of all papers share."""
    failures = failures_of(headlines, rows)
    return DecisionCard(
        choice=[["Paper", _plain(read_paper(name).paragraph)]],
        effects=[
            ["Rows", _plain(row_counts(rows))],
            *([f"Failure {k}", _plain(failure.sentence)] for k, failure in enumerate(failures, start=1)),
            ["Command", Markup("<code>{}</code>").format(f"poolwise reproduce {name}")],
            ["Time", _plain(recorded_time(name))],
            ["Hashes", _plain(hashes(name, provenance))],
        ],
        recommended="",
        note="The paper, what is reproduced, what failed and why, and how to run it again.",
    )


def _plain(text: str) -> str:
    """Return text in normal weight, since the page sets the values of a decision in bold."""
    return Markup('<span style="font-weight: 400">{}</span>').format(text)
