"""Text of an explained wait: the answer, the table of episodes, and the memory of the job over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Column, Table

from poolwise.cli.console import print_line
from poolwise.cli.tables import plain_table, print_table
from poolwise.units import format_memory

if TYPE_CHECKING:
    from poolwise.explain import Episode, Explanation

LINES = 40
"""Episodes that the table shows without --all."""


def print_explanation(name: str, found: Explanation, everything: bool) -> None:
    """Print an explanation: the answer, the episodes of the wait, its totals and the outcome."""
    from poolwise.explain.sentences import answer_sentence, duration, held_by, memory_sentence

    print_line(answer_sentence(found))
    print_line(f"{name}: job {found.job.id}, submitted {duration(found.job.submit)} after the start of the trace")
    if found.episodes:
        print_table(_episode_table(found, everything))
        for (rule, resource), ns in found.totals().items():
            print_line(f"  {duration(ns)} {held_by(rule, resource)}")
    print_line(_outcome(found))
    if found.memory:
        print_line(memory_sentence(found.memory))
        print_table(_memory_table(found, everything))


def _episode_table(found: Explanation, everything: bool) -> Table:
    """Return one row per episode of the wait; the middle of a long wait is left out."""
    numbers = [Column(heading, justify="right") for heading in ("after", "for", "passes", "ahead")]
    amounts = [Column(heading, justify="right") for heading in ("needed", "free")]
    table = plain_table(*numbers, "held back by", *amounts, "in the way")
    shown, hidden = _cut(len(found.episodes), everything)
    for k, episode in enumerate(found.episodes):
        if k < shown or k >= shown + hidden:
            table.add_row(*_row(found, episode))
        elif k == shown:
            table.add_row("...", "", "", "", f"{hidden:,} more: --all shows them", "", "", "")
    return table


def _cut(count: int, everything: bool) -> tuple[int, int]:
    """Return how many rows to show at either end, and how many to hide between them."""
    shown = count if everything else LINES // 2
    return shown, max(0, count - 2 * shown)


def _memory_table(found: Explanation, everything: bool) -> Table:
    """Return the memory that the job held and used, one row per interval."""
    from poolwise.explain.sentences import duration

    numbers = [Column(heading, justify="right") for heading in ("after", "for", "in nodes", "in pools", "used")]
    table, stretches = plain_table(*numbers, ""), found.memory
    shown, hidden = _cut(len(stretches), everything)
    for k, one in enumerate(stretches):
        if shown <= k < shown + hidden:
            if k == shown:
                table.add_row("...", "", "", "", "", f"{hidden:,} more: --all shows them")
            continue
        amounts = [format_memory(one.local), format_memory(one.pooled), "" if one.used is None else format_memory(one.used)]
        last = k + 1 == len(stretches) or stretches[k + 1].run != one.run
        remarks = ["stalled: not enough memory"] * one.stood_still + [f"then {one.outcome}"] * last
        table.add_row(duration(one.begin - found.job.submit), duration(one.end - one.begin), *amounts, ", ".join(remarks))
    return table


def _row(found: Explanation, episode: Episode) -> Iterator[str]:
    from poolwise.explain.sentences import duration

    reason, amount_text = episode.reason, found.machine.amount_text
    yield duration(episode.start - found.job.submit)
    yield duration(episode.end - episode.start)
    yield f"{episode.passes:,}"
    yield _range(*(f"{n:,}" for n in episode.ahead))
    yield reason.text
    yield amount_text(reason.resource, reason.needed) if reason.resource else ""
    yield _range(*(amount_text(reason.resource, n) for n in episode.free)) if reason.resource else ""
    if reason.blocker is None:
        yield ""
        return
    reserved = "" if episode.reserved is None else _range(*(duration(ns - found.job.submit) for ns in episode.reserved))
    yield f"job {found.job.table.id[reason.blocker]}" + (f", reserved after {reserved}" if reserved else "")


def _outcome(found: Explanation) -> str:
    from poolwise.explain.sentences import duration

    if found.placement is not None:
        machine = found.machine
        places = [
            f"{machine.owners[owner]} {machine.amount_text(machine.resources[resource], taken)}"
            for _, owner, resource, taken in found.placement.rows()
        ]
        return f"started after {duration(found.wait)} on {', '.join(places)}"
    if found.rejected:
        return f"rejected after {duration(found.wait)}: {found.rejected}"
    return f"never started; the last pass was after {duration(found.wait)}"


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
