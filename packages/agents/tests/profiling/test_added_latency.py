"""Tests of the kernel program that delays page-ins, run on an interpreter, and of the reasons for not adding it."""

import errno
import itertools
import platform
import struct
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.added_latency import delay as added_latency_module
from benchmarks.added_latency import kernel_instructions as bpf
from benchmarks.added_latency import kernel_program
from benchmarks.added_latency.delay import MAX_LATENCY_NS, AddedLatency, added_latency, delay, delayed_page_ins
from benchmarks.added_latency.kernel_instructions import assemble
from benchmarks.added_latency.kernel_program import CALLS, Tracepoint
from poolwise.errors import InputError
from poolwise_agents.profiling.zram import ZramSwap
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


def run_delay(latency_ns: int, record: bytes, read_ns: int) -> tuple[list[int], int]:
    """Return the counters after one tracepoint record, and the time that passed, if each read of the clock takes `read_ns`."""
    now = itertools.count(2**40, read_ns)
    counters = [0, 0, 0]
    clock_reads = 0

    def clock() -> int:
        nonlocal clock_reads
        clock_reads += 1
        return next(now)

    code = assemble(delay(latency_ns, DEVICE, Tracepoint.parse(FORMAT), 7))
    assert run_kernel_program(code, record, counters, {5: clock}) == 0
    return counters, max(clock_reads - 1, 0) * read_ns


def record_of(device: int = DEVICE, kind: bytes = b"RS") -> bytes:
    return struct.pack("<8xI4xQI10s", device, 2048, 8, kind)


@given(st.integers(1, MAX_LATENCY_NS), st.integers(5, 5000))
def test_read_is_delayed_by_the_latency_and_less_than_one_clock_read_more(latency_ns: int, read_ns: int) -> None:
    (reads, spent, cut_short), passed = run_delay(latency_ns, record_of(), read_ns)
    assert (reads, spent, cut_short) == (1, passed, 0) and latency_ns <= passed < latency_ns + read_ns


@pytest.mark.parametrize(
    "record", [record_of(device=DEVICE + 1), record_of(device=DEVICE ^ 1 << 31), record_of(kind=b"W"), record_of(kind=b"DS")]
)
def test_other_devices_and_writes_are_not_delayed(record: bytes) -> None:
    assert run_delay(5000, record, 20) == ([0, 0, 0], 0)


def test_stopped_clock_ends_the_delay_and_is_counted() -> None:
    (reads, _, cut_short), _ = run_delay(5000, record_of(), 1)
    assert (reads, cut_short) == (1, 1)


def test_tracepoint_is_parsed_from_its_format() -> None:
    tracepoint = Tracepoint.parse(FORMAT)
    assert tracepoint.number == 2097
    assert (
        tracepoint.fields["dev"] == (8, 4)
        and tracepoint.fields["rwbs"] == (28, 10)
        and tracepoint.fields["common_pid"] == (4, 4)
    )
    with pytest.raises(OSError, match="has no ID"):
        Tracepoint.parse("")


def test_instructions_are_encoded_for_the_kernel() -> None:
    assert assemble([bpf.load(4, 2, 1, 8)]) == bytes.fromhex("6112080000000000")
    assert assemble([bpf.add(9, -1)]) == bytes.fromhex("07090000ffffffff")
    assert assemble(["back", bpf.jump("back"), bpf.jump("on"), bpf.END, "on"]) == bytes.fromhex(
        "0500ffff00000000 0500010000000000 9500000000000000"
    )
    assert assemble(bpf.load_counter_address(1, 3, 2)) == bytes.fromhex("1821000003000000 0000000010000000")
    with pytest.raises(KeyError):
        assemble([bpf.jump("nowhere")])


def test_reason_is_given_if_no_latency_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    def description(latency_ns: int, swap: ZramSwap | None) -> str:
        with added_latency(latency_ns, swap) as added:
            assert added == AddedLatency(added.description) and added.reads() is None
            return added.description

    assert description(0, SWAP) == "not added: none requested"
    assert "other programs use this swap" in description(5000, None)

    def reject(*_: object) -> Tracepoint:
        raise OSError(errno.EPERM, "fsopen: Operation not permitted")

    monkeypatch.setattr(added_latency_module.Tracepoint, "find", reject)
    assert description(5000, SWAP).startswith("not added: ")
    assert "fsopen: Operation not permitted" in description(5000, SWAP)
    monkeypatch.setattr(added_latency_module.Tracepoint, "find", lambda _: Tracepoint(1, {}))
    monkeypatch.setattr(ZramSwap, "kernel_device_number", DEVICE)
    assert description(5000, SWAP).startswith("not added: ")


def test_unknown_machine_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    with pytest.raises(OSError, match=r"bpf: unknown system call number on .* s390x"):
        kernel_program.read_counters(0, 1)
    assert {frozenset(calls) for calls in CALLS.values()} == {frozenset(CALLS["Linux x86_64"])}


class FakeLatency(AddedLatency):
    """A latency by which a given number of reads were delayed."""

    delayed_reads = 4096

    def reads(self) -> dict[str, float]:
        return {"reads": self.delayed_reads, "mean_us": 5.1, "cut_short": 0}


def probe() -> dict[str, object]:
    return {"major_faults": 4096, "us": {"p50": 10.0}}


@pytest.fixture
def fake_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delay no reads, but count them as delayed."""
    monkeypatch.setattr(added_latency_module, "added_latency", lambda *_: nullcontext(FakeLatency("5 us added", 3)))


@pytest.mark.usefixtures("fake_latency")
def test_conditions_contain_page_ins_with_and_without_the_added_latency() -> None:
    about: dict[str, Any] = {"page_in": {"us": {"p50": 5.0}}}
    with delayed_page_ins(5000, SWAP, about, probe):
        assert (about["wanted_latency_ns"], about["added_latency"]) == (5000, "5 us added")
    assert about["page_in"]["us"]["p50"] == 10.0 and about["page_in_without"]["us"]["p50"] == 5.0
    assert about["slowed"] == {"reads": 4096, "mean_us": 5.1, "cut_short": 0}


@pytest.mark.usefixtures("fake_latency")
def test_latency_that_does_not_affect_page_ins_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeLatency, "delayed_reads", 2047)
    with (
        pytest.raises(InputError, match="4096 pages came in from swap, but only 2047 reads were delayed"),
        delayed_page_ins(5000, SWAP, {"page_in": {}}, probe),
    ):
        pass


def test_conditions_state_why_no_latency_was_added() -> None:
    about: dict[str, Any] = {"page_in": {"us": {"p50": 8.0}}}
    with delayed_page_ins(5000, None, about, probe):
        pass
    assert about["added_latency"].startswith("not added: other programs use this swap")
    assert about["page_in"] == {"us": {"p50": 8.0}} and "page_in_without" not in about and about["slowed"] is None
