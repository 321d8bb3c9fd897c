"""A few jobs among many, in words."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 6
"""Ids that a sentence names; JSON has all of them."""

LITTLE = 1e-5
"""Below this share it is only said how little it is."""


def ids_text(ids: Sequence[int]) -> str:
    """Name jobs: 'job 7', 'jobs 7, 9', 'jobs 1, 2, 3, 4, 5, 6 and 4 more'."""
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return f"job{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids[:SHOWN]))}{more}"


def share_text(share: float) -> str:
    """A share in percent with two digits: 0.00043 -> '0.043 %'."""
    if 0 < share < LITTLE:
        return f"less than {100 * LITTLE:g} %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"
