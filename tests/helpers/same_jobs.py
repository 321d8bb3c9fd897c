"""Comparison of workloads."""

import numpy as np

from poolwise.model import Workload


def assert_same_jobs(got: Workload, want: Workload) -> None:
    """Assert that two workloads have equal jobs, attributes and names."""
    for name in ("id", "submit", "duration", "requested", "tasks"):
        assert np.array_equal(getattr(got, name), getattr(want, name)), name
    for group in ("requests", "attributes"):
        columns, others = getattr(got, group), getattr(want, group)
        assert set(columns) == set(others)
        for name, column in columns.items():
            assert column.dtype.kind == others[name].dtype.kind, name
            assert np.array_equal(column, others[name], equal_nan=column.dtype.kind == "f"), name
    assert got.name == want.name
