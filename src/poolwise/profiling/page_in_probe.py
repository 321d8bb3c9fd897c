"""Times how long a page takes to come in from swap. A program by itself, without imports of ours: it runs in a small group.

Prints one JSON object: microseconds of page-ins at some quantiles, of touching a page that is there, and how many of the
touches were major faults. Half of each page is random bytes and half zeros, so that compressors have something to do.
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
NO_HUGE_PAGES, PAGE_OUT = 15, 21  # MADV_NOHUGEPAGE and MADV_PAGEOUT of Linux, not all of which Python names
QUANTILES = (0.1, 0.5, 0.9, 0.99)


def touches(content: mmap.mmap, pages: list[int]) -> list[int]:
    """Nanoseconds of reading a byte of each page, in the order given."""
    clock, took = time.perf_counter_ns, []
    for page in pages:
        begun = clock()
        content[page * PAGE]
        took.append(clock() - begun)
    return took


def main(count: int, seed: int) -> None:
    """Probe so many pages in a random order."""
    pages = list(range(count))
    random.Random(seed).shuffle(pages)
    with mmap.mmap(-1, count * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as content:
        content.madvise(NO_HUGE_PAGES)
        for page in range(count):
            content[page * PAGE : page * PAGE + PAGE // 2] = os.urandom(PAGE // 2)
        there = sorted(touches(content, pages))
        content.madvise(PAGE_OUT)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        took = sorted(touches(content, pages))
        major = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
    found = {f"p{quantile * 100:g}": took[int(quantile * (count - 1))] / 1000 for quantile in QUANTILES}
    mean = sum(took) / count / 1000
    print(
        json.dumps({"pages": count, "major_faults": major, "us": {**found, "mean": mean}, "there_us": there[count // 2] / 1000})
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
