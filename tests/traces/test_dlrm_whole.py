"""Tests of whole instances of a disaggregated service: computed by hand, and conservation of resource time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poolwise.traces.dlrm_whole import whole_instances

rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 50), st.integers(1, 96), st.integers(0, 400)),
    min_size=1,
    max_size=30,
)


def merge(rows, most):
    app, is_gpu, seconds, cores, memory = (np.array(column) for column in zip(*rows, strict=True))
    return (
        app,
        is_gpu,
        seconds.astype(float),
        whole_instances(app, is_gpu, seconds.astype(float), {"cores": cores, "memory": memory}, most),
    )


def test_example_computed_by_hand():
    """Merge, into 100 s of GPU instances, 64 cores for 50 s and 32 cores for 200 s; another instance would exceed the limit."""
    rows = [
        ("a", True, 100, 8, 40),
        ("a", False, 50, 64, 300),
        ("a", False, 200, 32, 100),
        ("a", False, 10, 96, 1),
        ("b", False, 9, 5, 5),
    ]
    *_, (amounts, merged) = merge(rows, 104)
    assert merged.tolist() == [False, True, True, False, False]
    assert amounts["cores"].tolist() == [8 + 32 + 64, 64, 32, 96, 5]
    assert amounts["memory"].tolist() == [40 + 150 + 200, 300, 100, 1, 5]
    *_, (amounts, merged) = merge(rows, 60)
    assert merged.tolist() == [False, True, False, False, False]
    assert amounts["cores"][0] == 8 + 32


@given(rows, st.integers(1, 200))
def test_resource_time_of_application_is_preserved(rows, most):
    app, is_gpu, seconds, (amounts, merged) = merge(rows, most)
    cores, memory = (np.array([row[k] for row in rows]) for k in (3, 4))
    assert not (merged & is_gpu).any()
    for name in set(app.tolist()):
        mine, gpus = app == name, (app == name) & is_gpu
        for before, after in ((cores, amounts["cores"]), (memory, amounts["memory"])):
            held, holds = (before * seconds)[mine].sum(), (after * seconds)[mine & ~merged].sum()
            assert -1e-6 <= holds - held <= seconds[gpus].sum() + 1e-6  # rounded up by less than 1 per instance
        if not seconds[gpus].sum():
            assert not merged[mine].any()
        assert (amounts["cores"][gpus] <= max(most, cores[gpus].max(initial=0))).all()
    assert np.array_equal(amounts["cores"][~is_gpu], cores[~is_gpu])
