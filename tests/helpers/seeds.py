"""Seeds of random studies: the first few in the fast tests, all others in the long tests."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet


def few_and_more(first: int, few: int, count: int) -> list[ParameterSet]:
    """Return two parameters, which together have `count` seeds: the first `few`, and the others for the long tests."""
    seeds = range(first, first + count)
    return [pytest.param(seeds[:few], id="few"), pytest.param(seeds[few:], id="more", marks=pytest.mark.long)]
