"""Makes swap of one's own slower by a latency: what a network would add to a page-in.

A program in the kernel (see `kernel_program`) spins at each read from the device until the latency has passed. It does so in
the process that misses the page, so that the latency is processor time of that process, as where pages come by polled RDMA.
Actions are not slowed: the kernel takes pages out ahead of need.

Source: Sefati et al., IRoP, section II-B: "an artificial delay to major page swaps", 5 us on top of a RAM disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from poolwise.profiling import kernel_instructions as do
from poolwise.profiling.kernel_program import Tracepoint, new_counters, read_counters, running
from poolwise.profiling.zram import ZramSwap

MOST_NS = 100_000
"""Largest latency that is added: the processor does nothing else meanwhile."""
TRACEPOINT = "block/block_bio_queue"
PROGRAM = "poolwise_delay"
_TIME_NS = 5  # the kernel's function bpf_ktime_get_ns
_FASTEST_NS = 5  # no processor tells the time in less
_READS, _SPENT, _CUT_SHORT = 0, 1, 2


@dataclass(frozen=True)
class AddedLatency:
    """What was done to add a latency.

    Attributes
    ----------
    said : in words, "not added" and why where it was not
    counters : file of the counters, None where nothing is added
    """

    said: str
    counters: int | None = None

    def reads(self) -> dict[str, float] | None:
        """Reads that were slowed, us that each of them took longer, and how many were not slowed by all of the latency."""
        if self.counters is None:
            return None
        reads, spent, cut_short = read_counters(self.counters, 3)
        return {"reads": reads, "mean_us": spent / max(reads, 1) / 1000, "cut_short": cut_short}


@contextmanager
def added_latency(latency_ns: int, swap: ZramSwap | None) -> Iterator[AddedLatency]:
    """Slow the reads of a swap device by a latency, at most `MOST_NS`, until the end of the context.

    Parameters
    ----------
    latency_ns
        Nanoseconds that a read takes longer; 0 for none.
    swap
        The device, one's own; None where others use the swap too, which is never slowed.
    """
    with ExitStack() as held:
        yield _add(latency_ns, swap, held)


def _add(latency_ns: int, swap: ZramSwap | None, held: ExitStack) -> AddedLatency:
    if not latency_ns:
        return AddedLatency("not added: none was asked for")
    if swap is None:
        return AddedLatency(
            "not added: others use this swap too, and would be slowed (--make-swap makes one that is not shared)"
        )
    try:
        tracepoint = Tracepoint.find(TRACEPOINT)
        counters = held.enter_context(new_counters(3))
        held.enter_context(running(PROGRAM, delay(latency_ns, swap.number_in_kernel, tracepoint, counters), tracepoint))
    except (OSError, KeyError) as error:
        return AddedLatency(f"not added: the kernel does not let it ({error})")
    return AddedLatency(
        f"{latency_ns / 1000:g} us added to each read of {swap.device}, by a program that spins in the kernel", counters
    )


def delay(latency_ns: int, device: int, tracepoint: Tracepoint, counters: int) -> do.KernelLines:
    """The program: registers 1 what the tracepoint tells, 7 and 8 begin and end of the delay, 9 looks at the clock left.

    The kernel takes only loops that end, and follows them turn by turn beforehand; so a turn that comes to the end of the
    looks, which a processor cannot reach before the latency is over, is counted.
    """
    (device_at, device_size), (kind_at, _) = tracepoint.fields["dev"], tracepoint.fields["rwbs"]
    return [
        do.load(device_size, 2, 1, device_at),
        do.jump_unless(2, device, "other"),
        do.load(1, 2, 1, kind_at),
        do.jump_unless(2, ord("R"), "other"),
        do.call(_TIME_NS),
        do.copy(7, 0),
        do.copy(8, 0),
        do.add(8, latency_ns),
        do.let(9, latency_ns // _FASTEST_NS + 1),
        "look",
        do.call(_TIME_NS),
        do.jump_below(0, 8, "early"),
        do.jump("over"),
        "early",
        do.add(9, -1),
        do.jump_unless(9, 0, "look"),
        *do.place(1, counters, _CUT_SHORT),
        do.let(2, 1),
        do.count(1, 2),
        "over",
        do.subtract(0, 7),
        *do.place(1, counters, _SPENT),
        do.count(1, 0),
        *do.place(1, counters, _READS),
        do.let(2, 1),
        do.count(1, 2),
        "other",
        do.let(0, 0),
        do.END,
    ]
