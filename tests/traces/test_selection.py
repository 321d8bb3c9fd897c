from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.traces.selection import select


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_each_row_is_kept_or_counted_under_its_first_reason(rows):
    reasons = {name: np.array(column) for name, column in zip("abc", zip(*rows, strict=True), strict=True)}
    first = ["abc"[row.index(True)] for row in rows if any(row)]
    if len(first) == len(rows):
        with pytest.raises(InputError, match=f"{first[0]}: ") as caught:
            select(reasons, Path("some.log"), "look")
        assert (caught.value.file, caught.value.remedy) == (Path("some.log"), "look")
        return
    keep, excluded = select(reasons, Path("some.log"), "look")
    assert keep.tolist() == [not any(row) for row in rows]
    assert excluded == {name: first.count(name) for name in "abc" if name in first}
