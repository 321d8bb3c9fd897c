"""A machine whose nodes are shared, for tests of several folders."""

import numpy as np

from poolwise.model import Kind, Machine


def shared_nodes(**each):
    """Two nodes that jobs share, with these resources."""
    return Machine(
        name="shared",
        owners=("n0", "n1"),
        kind=np.full(2, Kind.NODE, dtype=np.int64),
        type=("n", "n"),
        rack=np.zeros(2, dtype=np.int64),
        position=np.zeros((2, 2), dtype=np.int64),
        home=np.full(2, -1, dtype=np.int64),
        resources=tuple(each),
        capacity=np.array([[*each.values()]] * 2, dtype=np.int64),
    )
