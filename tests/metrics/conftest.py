"""A small run with all its numbers, and a function that builds others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from poolwise.metrics import Outcomes, Status
from poolwise.quantities import SECOND

Row = tuple[float, ...]


def build(rows: Sequence[Row], **facts: Any) -> Outcomes:
    """Return outcomes from (submit, start, end, duration in seconds, nodes, memory); start None: rejected, NaN: waiting."""
    table: list[Row] = list(rows)
    seconds = np.array([[0 if v is None else v for v in row] for row in table], dtype=np.float64).reshape(-1, 6)
    status = [Status.REJECTED if row[1] is None else Status.WAITING if np.isnan(row[1]) else Status.FINISHED for row in table]
    finished = np.array([s is Status.FINISHED for s in status], dtype=np.bool_)
    ns = np.where(np.isnan(seconds), 0, np.rint(seconds * SECOND)).astype(np.int64)
    nodes, memory = seconds[:, 4].astype(np.int64), seconds[:, 5].astype(np.int64)
    machine = {"n_nodes": 4, "whole_nodes": True, "local_memory": 100, "node_memory": 400, "pool_memory": 200, **facts}
    return Outcomes(
        id=np.arange(1, len(table) + 1),
        submit=ns[:, 0],
        start=np.where(finished, ns[:, 1], -1),
        end=np.where(finished, ns[:, 2], -1),
        duration=ns[:, 3],
        requested=ns[:, 3],
        nodes=nodes,
        memory=memory,
        nodes_held=np.where(finished, nodes, 0).astype(np.float64),
        status=np.array(status, dtype=np.uint8),
        reason=tuple("too large" if s is Status.REJECTED else "" for s in status),
        first_submit=int(ns[:, 0].min()) if len(table) else 0,
        **machine,
    )


@pytest.fixture(scope="session")
def outcomes_of() -> Callable[..., Outcomes]:
    """Return `build`."""
    return build


@pytest.fixture(scope="session")
def example() -> Outcomes:
    """Return six jobs on 4 nodes of 100 MiB with 200 MiB of pools; remote memory slows the second one down by 20 %."""
    never = float("nan")
    return build(
        [  # submit, start, end, duration, nodes, memory
            (0, 0, 100, 100, 2, 50),
            (10, 20, 140, 100, 2, 150),
            (20, 140, 144, 4, 4, 0),
            (30, 144, 194, 50, 1, 100),
            (40, None, None, 60, 9, 0),
            (50, never, never, 10, 1, 0),
        ]
    )
