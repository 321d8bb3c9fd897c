"""Places labels beside the ends of lines so that none covers another."""

from __future__ import annotations

import math
from collections.abc import Sequence


def apart(values: Sequence[float], domain: tuple[float, float], height: float, gap: float, log: bool) -> list[float]:
    """Move values of an axis apart so that they are drawn at least `gap` from each other, in the order that they have.

    Parameters
    ----------
    values
        (n,) where the labels belong, in units of the axis.
    domain
        Ends of the axis.
    height, gap
        Length of the axis, and least distance, in one unit of the picture. Where n gaps are more than the height, they share
        the height equally.
    log
        Whether the axis is logarithmic.

    Returns
    -------
    (n,) values, each as near to its own as the others let it, all within the axis.
    """
    low, high = (math.log(end) if log else end for end in domain)
    if not values or high <= low:
        return list(values)
    gap = min(gap, height / max(1, len(values) - 1))
    order = sorted(range(len(values)), key=lambda k: (values[k], k))
    place = [((math.log(values[k]) if log else values[k]) - low) / (high - low) * height for k in order]
    # Blocks of labels that touch, as (mean wish of the first label, labels): merged until none overlaps the one before.
    blocks: list[tuple[float, int]] = []
    for wish in place:
        block = (wish, 1)
        while blocks and blocks[-1][0] + blocks[-1][1] * gap > block[0]:
            first, count = blocks.pop()
            total = count + block[1]
            block = ((first * count + (block[0] - count * gap) * block[1]) / total, total)
        top = height - (block[1] - 1) * gap
        blocks.append((min(max(block[0], 0.0), top), block[1]))
    found = [first + k * gap for first, count in blocks for k in range(count)]
    for k in range(len(found) - 2, -1, -1):
        found[k] = min(found[k], found[k + 1] - gap)
    for k in range(1, len(found)):
        found[k] = max(found[k], found[k - 1] + gap)
    moved = [0.0] * len(values)
    for k, at in zip(order, found, strict=True):
        scaled = low + min(max(at, 0.0), height) / height * (high - low)
        moved[k] = math.exp(scaled) if log else scaled
    return moved
