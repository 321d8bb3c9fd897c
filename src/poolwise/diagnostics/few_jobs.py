"""Text about a few jobs of a workload."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 6
"""Number of ids in a sentence; JSON contains all ids."""

LITTLE = 1e-5
"""Smaller shares are reported as 'less than' this one."""


def ids_text(ids: Sequence[int]) -> str:
    """Format job ids: 'job 7', 'jobs 7, 9', 'jobs 1, 2, 3, 4, 5, 6 and 4 more'."""
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return f"job{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids[:SHOWN]))}{more}"


def share_text(share: float) -> str:
    """Format a share as a percentage with two digits: 0.00043 -> '0.043 %'."""
    if 0 < share < LITTLE:
        return f"less than {100 * LITTLE:g} %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"
