"""Claims files (catalog/claims/NAME.csv) and comparison.csv."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from poolwise.errors import InputError, UnknownNameError
from poolwise_reproductions.causes import faults, named_rows
from poolwise_reproductions.criteria import ClaimRule
from poolwise_reproductions.published import (
    COLUMNS,
    ONE_RUN,
    READINGS,
    SEPARATOR,
    SWITCH,
    UNEXPLAINED,
    VALUES,
    Claim,
    ClaimClass,
    ClaimRow,
    ReasonBasis,
    names_row,
)


def claims_csv(rows: Sequence[ClaimRow]) -> str:
    """Return the text of comparison.csv."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(row.cells() for row in rows)
    return text.getvalue()


def read_claims(path: Path) -> list[Claim]:
    """Read a claims file: columns artifact, condition, metric, unit, published, rule, tolerance, note, reason.

    The columns class, basis and shown_by are optional: by default a claim is the paper's, and the basis of its reason is
    unknown. An empty published value is NaN (only with the rules order and shown). If the file has the columns place and
    quotation, every row of class paper needs both. Raises InputError with file and line.
    """
    claims: list[Claim] = []
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            rule = _one_of(ClaimRule, row, "rule", "", path, line)
            kind = _one_of(ClaimClass, row, "class", "paper", path, line)
            basis = _one_of(ReasonBasis, row, "basis", "unknown", path, line)
            published, tolerance = (_parse(row[name], path, line, name) for name in ("published", "tolerance"))
            if math.isnan(published) and rule not in ("order", "shown"):
                raise InputError(f"rule {rule} needs a published value", file=path, line=line, field="published")
            claims.append(
                Claim(
                    row["artifact"], row["condition"], row["metric"], row["unit"], published,
                    cast(ClaimRule, rule), 0.0 if math.isnan(tolerance) else tolerance, row.get("note") or "",
                    row.get("reason") or "", cast(ClaimClass, kind), cast(ReasonBasis, basis), row.get("shown_by") or "",
                    row.get("place") or "", row.get("quotation") or "",
                )
            )  # fmt: skip
            if kind == "paper" and "quotation" in row and not (claims[-1].place and claims[-1].quotation):
                remedy = "quote the words of the paper and their place, or set the class of the row to ours"
                raise InputError(
                    "a claim of the paper needs a quotation", file=path, line=line, field="quotation", remedy=remedy
                )
    _check_rows(claims, path)
    return claims


def _check_rows(claims: Sequence[Claim], path: Path) -> None:
    keys = [claim.key for claim in claims]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the row {twice} appears twice", file=path, remedy="name each claim once")
    rows = {SEPARATOR.join(key) for key in keys}
    for line, claim in enumerate(claims, start=2):
        wrong = faults(claim.reason, VALUES) + [f"no row is named '{n}'" for n in named_rows(claim.reason) if n not in rows]
        if claim.reason.startswith(UNEXPLAINED) and (claim.basis != "unknown" or claim.shown_by):
            wrong.append("a claim that is not explained has no basis")
        if wrong:
            remedy = "show a measured value, or quote a number with its place; see poolwise_reproductions.causes"
            raise InputError("; ".join(wrong), file=path, line=line, field="reason", remedy=remedy)
        if names_row(claim.shown_by) and claim.shown_by not in rows:
            raise InputError(
                f"no row is named '{claim.shown_by}'",
                file=path,
                line=line,
                field="shown_by",
                remedy=f"name a reading ({', '.join(READINGS)}), '{SWITCH}NAME', '{ONE_RUN}' or a row: "
                f"artifact{SEPARATOR}condition{SEPARATOR}metric",
            )


def _one_of(names: Any, row: Mapping[str, str], field: str, default: str, path: Path, line: int) -> str:
    """Read a cell that must contain one of some names."""
    cell = row.get(field) or default
    if cell not in get_args(names):
        raise UnknownNameError.of(field, cell, get_args(names), file=path, line=line, field=field)
    return cell


def _parse(text: str, path: Path, line: int, field: str) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError as error:
        raise InputError(f"'{text}' is not a number", file=path, line=line, field=field) from error
