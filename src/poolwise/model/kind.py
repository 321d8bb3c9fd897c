"""Kinds of owners of a machine."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """Kind of an owner.

    Examples
    --------
    >>> import poolwise
    >>> machine = poolwise.Machine.of_racks(2, 4, local="8 GiB", pool="64 GiB")
    >>> machine.of_kind(poolwise.Kind.POOL)
    array([2, 3])
    """

    NODE = 0  # one shared node, or a group of identical whole nodes of one rack
    POOL = 1
    DEVICE = 2
    LINK = 3
