"""Selection of the first items by key, against sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poolwise.kernels.common import heap
from poolwise.kernels.python_code import python_code


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.data())
def test_first_items_are_selected(keys: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(keys)))
    items, key = np.array(data.draw(st.permutations(range(len(keys))))), np.array(keys)
    python_code(heap.select)(items, len(keys), count, key)
    assert sorted(items.tolist()) == list(range(len(keys)))
    assert sorted(items[:count].tolist()) == sorted(np.lexsort((np.arange(len(keys)), key))[:count].tolist())
