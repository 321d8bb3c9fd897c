"""What the owners of a machine are."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What an owner is."""

    NODE = 0  # one shared node, or a group of identical whole nodes of one rack
    POOL = 1
    DEVICE = 2
    LINK = 3
