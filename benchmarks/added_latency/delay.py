"""Adds a latency to reads from a swap device, like the network latency of a page-in from remote memory.

A kernel program (see `kernel_program`) spins at each read from the device until the latency has passed. It runs in the process
that faults, so the latency counts as processor time of that process, as with page-ins by polled RDMA. Writes are not delayed,
since the kernel evicts pages ahead of need.

Source: Sefati et al., IRoP, section II-B: "an artificial delay to major page swaps", 5 us on top of a RAM disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.added_latency import kernel_instructions as bpf
from benchmarks.added_latency.kernel_program import Tracepoint, new_counters, read_counters, running
from poolwise.errors import InputError
from poolwise_agents.profiling.zram import ZramSwap

MAX_LATENCY_NS = 100_000  # largest latency that is added, since the processor does nothing else during it
TRACEPOINT = "block/block_bio_queue"
PROGRAM = "poolwise_delay"
_TIME_NS = 5  # the kernel helper bpf_ktime_get_ns
_MIN_CLOCK_READ_NS = 5  # no processor reads the clock faster
_READS, _SPENT, _CUT_SHORT = 0, 1, 2


@dataclass(frozen=True)
class AddedLatency:
    """Result of adding a latency."""

    description: str  # the latency, or "not added" and the reason
    counters: int | None = None  # file descriptor of the counters, None if nothing was added

    def reads(self) -> dict[str, float] | None:
        """Return the number of delayed reads, their mean delay (us), and how many were delayed by less than the latency."""
        if self.counters is None:
            return None
        reads, spent, cut_short = read_counters(self.counters, 3)
        return {"reads": reads, "mean_us": spent / max(reads, 1) / 1000, "cut_short": cut_short}


@contextmanager
def added_latency(latency_ns: int, swap: ZramSwap | None) -> Iterator[AddedLatency]:
    """Delay reads from a dedicated swap device by up to `MAX_LATENCY_NS`, while the context is open.

    `swap` is None if the swap is shared with others; it is then never delayed.
    """
    with ExitStack() as stack:
        yield _add(latency_ns, swap, stack)


def _add(latency_ns: int, swap: ZramSwap | None, stack: ExitStack) -> AddedLatency:
    if not latency_ns:
        return AddedLatency("not added: none requested")
    if swap is None:
        return AddedLatency(
            "not added: other programs use this swap and would be slowed down too (--make-swap creates an exclusive one)"
        )
    try:
        tracepoint = Tracepoint.find(TRACEPOINT)
        counters = stack.enter_context(new_counters(3))
        program = delay(latency_ns, swap.kernel_device_number, tracepoint, counters)
        stack.enter_context(running(PROGRAM, program, tracepoint))
    except (OSError, KeyError) as error:
        return AddedLatency(f"not added: not permitted by the kernel ({error})")
    return AddedLatency(
        f"{latency_ns / 1000:g} us added to each read of {swap.device}, by a program that spins in the kernel", counters
    )


@contextmanager
def delayed_page_ins(
    latency_ns: int, swap: ZramSwap | None, about: dict[str, Any], probe: Callable[[], dict[str, Any]]
) -> Iterator[None]:
    """Add a latency to the measured runs, and describe it in their conditions; see `experiment.Intervention`.

    Raises InputError if the latency does not affect page-ins.
    """
    with added_latency(latency_ns, swap) as added:
        about |= {"wanted_latency_ns": latency_ns, "added_latency": added.description}
        if added.counters is not None:
            about |= {"page_in": _delayed_page_in(added, probe), "page_in_without": about["page_in"]}
        yield
        about["slowed"] = added.reads()


def _delayed_page_in(added: AddedLatency, probe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    probed, reads = probe(), added.reads()
    if reads is None or reads["reads"] < probed["major_faults"] // 2:
        delayed = 0 if reads is None else reads["reads"]
        problem = f"{probed['major_faults']} pages came in from swap, but only {delayed} reads were delayed"
        raise InputError(problem, field="latency", remedy="add no latency: this kernel reads pages on another path")
    return probed


def delay(latency_ns: int, device: int, tracepoint: Tracepoint, counters: int) -> bpf.KernelProgram:
    """Return the program. Registers: 1 tracepoint's record, 7 and 8 start and end of the delay, 9 remaining iterations.

    The kernel only accepts loops that provably end. The number of clock reads is therefore bounded, by more reads than a
    processor can do during the latency. A delay that reaches the bound is counted as cut short.
    """
    (device_at, device_size), (kind_at, _) = tracepoint.fields["dev"], tracepoint.fields["rwbs"]
    return [
        bpf.load(device_size, 2, 1, device_at),
        bpf.jump_unless(2, device, "other"),
        bpf.load(1, 2, 1, kind_at),
        bpf.jump_unless(2, ord("R"), "other"),
        bpf.call(_TIME_NS),
        bpf.copy(7, 0),
        bpf.copy(8, 0),
        bpf.add(8, latency_ns),
        bpf.set_value(9, latency_ns // _MIN_CLOCK_READ_NS + 1),
        "read_clock",
        bpf.call(_TIME_NS),
        bpf.jump_below(0, 8, "early"),
        bpf.jump("over"),
        "early",
        bpf.add(9, -1),
        bpf.jump_unless(9, 0, "read_clock"),
        *bpf.load_counter_address(1, counters, _CUT_SHORT),
        bpf.set_value(2, 1),
        bpf.atomic_add(1, 2),
        "over",
        bpf.subtract(0, 7),
        *bpf.load_counter_address(1, counters, _SPENT),
        bpf.atomic_add(1, 0),
        *bpf.load_counter_address(1, counters, _READS),
        bpf.set_value(2, 1),
        bpf.atomic_add(1, 2),
        "other",
        bpf.set_value(0, 0),
        bpf.END,
    ]
