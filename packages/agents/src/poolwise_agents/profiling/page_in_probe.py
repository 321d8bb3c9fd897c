"""Standalone program that measures the time of page-ins from swap. It imports no part of Poolwise, to fit into a small group.

It prints one JSON object: quantiles of the page-in time in microseconds, the time of touching a resident page, and the number
of major faults among the touches. Half of each page is random and half is zeros, so that compression takes realistic time.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import resource
import sys
import time

PAGE = mmap.PAGESIZE
NO_HUGE_PAGES, PAGE_OUT = 15, 21  # MADV_NOHUGEPAGE and MADV_PAGEOUT of Linux; Python does not define both
QUANTILES = (0.1, 0.5, 0.9, 0.99)


def touches(content: mmap.mmap, pages: list[int]) -> list[int]:
    """Return the time of reading one byte of each page, in the given order (ns)."""
    clock, times = time.perf_counter_ns, []
    for page in pages:
        started_at = clock()
        content[page * PAGE]
        times.append(clock() - started_at)
    return times


def main(count: int, seed: int) -> None:
    """Probe `count` pages in random order."""
    pages = list(range(count))
    random.Random(seed).shuffle(pages)
    with mmap.mmap(-1, count * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as content:
        content.madvise(NO_HUGE_PAGES)
        for page in range(count):
            content[page * PAGE : page * PAGE + PAGE // 2] = os.urandom(PAGE // 2)
        resident = sorted(touches(content, pages))
        content.madvise(PAGE_OUT)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        times = sorted(touches(content, pages))
        major = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
    quantiles = {f"p{quantile * 100:g}": times[int(quantile * (count - 1))] / 1000 for quantile in QUANTILES}
    us = {**quantiles, "mean": sum(times) / count / 1000}
    print(json.dumps({"pages": count, "major_faults": major, "us": us, "there_us": resident[count // 2] / 1000}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
