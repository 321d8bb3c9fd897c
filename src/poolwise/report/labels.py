"""Placement of labels at the ends of lines without overlaps."""

from __future__ import annotations

import math
from collections.abc import Sequence


def spread_labels(values: Sequence[float], domain: tuple[float, float], height: float, gap: float, log: bool) -> list[float]:
    """Move axis positions apart so that they are at least `gap` apart when drawn, in their original order.

    Parameters
    ----------
    values
        (n,) desired positions of the labels, in units of the axis.
    domain
        Ends of the axis.
    height, gap
        Length of the axis and minimum distance of labels, in the same unit. If n gaps exceed the height, the labels share
        the height equally.
    log
        Whether the axis is logarithmic.

    Returns
    -------
    (n,) positions within the axis, each as close to the desired one as the others allow.
    """
    low, high = (math.log(end) if log else end for end in domain)
    if not values or high <= low:
        return list(values)
    gap = min(gap, height / max(1, len(values) - 1))
    order = sorted(range(len(values)), key=lambda k: (values[k], k))
    place = [((math.log(values[k]) if log else values[k]) - low) / (high - low) * height for k in order]
    # Blocks of touching labels, as (mean desired position of the first label, labels), merged until none overlaps.
    blocks: list[tuple[float, int]] = []
    for desired in place:
        block = (desired, 1)
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
