"""Templates of causes: every number in a cause is a measurement, a published value, or a quotation with its place.

A template is text with two kinds of marks:

`{VALUE}` or `{VALUE:.3g}` is a number, where VALUE is

- `measured`, `low`, `high`, `published` or `switched`: of the claim itself,
- a reading, such as `as run`: the claim's measurement under it,
- `VALUE of ROW`, with ROW as "artifact | condition | metric": of another row,
- `100 - VALUE`: a number minus a value,
- `=TEXT | PLACE`: a number of the paper, and where it is printed.

`[...]` is a clause that is omitted unless all its values were measured, as in a quick run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

Lookup = Callable[[str, str], float]
"""Function from a kind of value ("measured", "as run", ...) and a row ("" for the claim itself) to the value; NaN if
missing."""

_CLAUSE = re.compile(r"\[([^\]]*)\]")
_MARK = re.compile(r"\{([^}]*)\}")
_FORMAT = re.compile(r"(.*):(\.\d+[fg])")
_LESS = re.compile(r"([\d.]+) - (.*)")
_PARAMETER = re.compile(
    r"\b(?:load|loads|Delta|eta|theta|seed|factor|equation|Algorithm|Table|Figure|section|Section|part) (?:of |up to |above )?"
    r"\d[\d.]*[a-z]?\b|\bone arrival in \d+ s\b|\b\d+ (?:GB|machines?|jobs)\b|\b[A-Za-z]+\d+(?:to\d+)?\b|\b\d+to\d+\b"
)
"""Numbers that name a setting or a place, not a result."""


def render(template: str, lookup: Lookup) -> str:
    """Return the text of a cause with its values; clauses with a missing value are omitted.

    Examples
    --------
    >>> values = {"measured": 10.04, "as run": float("nan")}
    >>> render("jobs wait[: {measured:.1f} % of them][, as run {as run:.1f} %]", lambda kind, row: values[kind])
    'jobs wait: 10.0 % of them'
    """

    def clause(clause_match: re.Match[str]) -> str:
        values = [_value(mark, lookup) for mark in _MARK.findall(clause_match[1])]
        return "" if any(value is None for value in values) else _filled(clause_match[1], lookup)

    return _filled(_CLAUSE.sub(clause, template), lookup)


def _filled(text: str, lookup: Lookup) -> str:
    return _MARK.sub(lambda mark_match: _value(mark_match[1], lookup) or "", text)


def _value(mark: str, lookup: Lookup) -> str | None:
    """Return the text of a mark; None if its value is missing."""
    if mark.startswith("="):
        text, _, place = mark[1:].partition(" | ")
        return f"{text} ({place})"
    kind, row, least, how = parse(mark)
    value = lookup(kind, row)
    if math.isnan(value):
        return None
    shown = value if least is None else least - value
    return f"{shown:,.0f}" if how.endswith("g") and abs(shown) >= 1000 else format(shown, how)


def parse(mark: str) -> tuple[str, str, float | None, str]:
    """Return the kind of value, the row ("" for the claim itself), the number it is subtracted from, and the format."""
    formatted = _FORMAT.fullmatch(mark)
    name, how = (formatted[1], formatted[2]) if formatted else (mark, ".3g")
    less = _LESS.fullmatch(name)
    name, least = (less[2], float(less[1])) if less else (name, None)
    kind, _, row = name.partition(" of ")
    return kind, row, least, how


def named_rows(template: str) -> Iterator[str]:
    """Yield the other rows whose values a template shows."""
    for mark in _MARK.findall(template):
        if not mark.startswith("=") and parse(mark)[1]:
            yield parse(mark)[1]


def pattern(cause: str) -> str:
    """Return a cause without its numbers: equal for rows that share a cause and differ in their values."""
    return re.sub(r"-?\d[\d.,]*(?:e[-+]?\d+)?", "0", cause)


def faults(template: str, kinds: tuple[str, ...]) -> list[str]:
    """Return the faults of a template: typed numbers, values outside clauses, unknown values, quotations without a place."""
    problems = []
    for mark in _MARK.findall(template):
        if mark.startswith("="):
            if not mark.partition(" | ")[2]:
                problems.append(f"the quotation '{mark}' has no place")
        elif parse(mark)[0] not in kinds:
            problems.append(f"unknown value '{parse(mark)[0]}'")
    outside = _CLAUSE.sub("", template)
    problems += [f"'{mark}' is not in a clause" for mark in _MARK.findall(outside) if not mark.startswith("=")]
    typed = _PARAMETER.sub("", _MARK.sub("", template))
    return problems + [f"the number {number} is typed" for number in re.findall(r"\d[\d.,]*", typed)]
