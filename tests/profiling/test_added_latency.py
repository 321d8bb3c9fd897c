"""The program that slows page-ins, run on a machine of its own; what is said where nothing is slowed."""

import errno
import itertools
import platform
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.profiling import added_latency as adding
from poolwise.profiling import kernel_instructions as do
from poolwise.profiling import kernel_program
from poolwise.profiling.added_latency import MOST_NS, AddedLatency, added_latency, delay
from poolwise.profiling.kernel_instructions import assemble
from poolwise.profiling.kernel_program import CALLS, Tracepoint
from poolwise.profiling.zram import ZramSwap
from tests.helpers.kernel_machine import run_kernel_program

FORMAT = """name: block_bio_queue
ID: 2097
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;

print fmt: "%d,%d", ((unsigned int) ((REC->dev) >> 20))
"""
DEVICE = 253 << 20 | 1
SWAP = ZramSwap(1, "00000000-0000-0000-0000-000000000000")


def slow(latency_ns: int, record: bytes, look_ns: int) -> tuple[list[int], int]:
    """Counters after one read that is told so, and ns that went by, where each look at the clock takes so long."""
    now = itertools.count(2**40, look_ns)
    counters = [0, 0, 0]
    looks = 0

    def clock() -> int:
        nonlocal looks
        looks += 1
        return next(now)

    code = assemble(delay(latency_ns, DEVICE, Tracepoint.parse(FORMAT), 7))
    assert run_kernel_program(code, record, counters, {5: clock}) == 0
    return counters, max(looks - 1, 0) * look_ns


def told(device: int = DEVICE, kind: bytes = b"RS") -> bytes:
    return struct.pack("<8xI4xQI10s", device, 2048, 8, kind)


@given(st.integers(1, MOST_NS), st.integers(5, 5000))
def test_a_read_takes_the_latency_longer_and_less_than_one_look_more(latency_ns: int, look_ns: int) -> None:
    (reads, spent, cut_short), passed = slow(latency_ns, told(), look_ns)
    assert (reads, spent, cut_short) == (1, passed, 0) and latency_ns <= passed < latency_ns + look_ns


@pytest.mark.parametrize("record", [told(device=DEVICE + 1), told(device=DEVICE ^ 1 << 31), told(kind=b"W"), told(kind=b"DS")])
def test_other_devices_and_writes_are_not_slowed(record: bytes) -> None:
    assert slow(5000, record, 20) == ([0, 0, 0], 0)


def test_a_clock_that_stands_still_ends_the_delay_and_is_counted() -> None:
    (reads, _, cut_short), _ = slow(5000, told(), 1)
    assert (reads, cut_short) == (1, 1)


def test_a_tracepoint_is_read_from_its_format() -> None:
    found = Tracepoint.parse(FORMAT)
    assert found.number == 2097
    assert found.fields["dev"] == (8, 4) and found.fields["rwbs"] == (28, 10) and found.fields["common_pid"] == (4, 4)
    with pytest.raises(OSError, match="has no ID"):
        Tracepoint.parse("")


def test_instructions_are_encoded_as_the_kernel_reads_them() -> None:
    assert assemble([do.load(4, 2, 1, 8)]) == bytes.fromhex("6112080000000000")
    assert assemble([do.add(9, -1)]) == bytes.fromhex("07090000ffffffff")
    assert assemble(["back", do.jump("back"), do.jump("on"), do.END, "on"]) == bytes.fromhex(
        "0500ffff00000000 0500010000000000 9500000000000000"
    )
    assert assemble(do.place(1, 3, 2)) == bytes.fromhex("1821000003000000 0000000010000000")
    with pytest.raises(KeyError):
        assemble([do.jump("nowhere")])


def test_what_is_not_added_is_said_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(latency_ns: int, swap: ZramSwap | None) -> str:
        with added_latency(latency_ns, swap) as added:
            assert added == AddedLatency(added.said) and added.reads() is None
            return added.said

    assert said(0, SWAP) == "not added: none was asked for"
    assert "others use this swap too" in said(5000, None)

    def refuse(*_: object) -> Tracepoint:
        raise OSError(errno.EPERM, "fsopen: Operation not permitted")

    monkeypatch.setattr(adding.Tracepoint, "find", refuse)
    assert said(5000, SWAP).startswith("not added: ") and "fsopen: Operation not permitted" in said(5000, SWAP)
    monkeypatch.setattr(adding.Tracepoint, "find", lambda _: Tracepoint(1, {}))
    monkeypatch.setattr(ZramSwap, "number_in_kernel", DEVICE)
    assert said(5000, SWAP).startswith("not added: ")


def test_a_machine_whose_system_calls_are_not_known_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    with pytest.raises(OSError, match=r"bpf: its number on .* s390x is not known"):
        kernel_program.read_counters(0, 1)
    assert {frozenset(calls) for calls in CALLS.values()} == {frozenset(CALLS["Linux x86_64"])}
