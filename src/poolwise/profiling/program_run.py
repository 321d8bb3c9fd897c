"""One run of a program in a control group of its own: how long it took and what it used."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from poolwise.errors import InputError
from poolwise.profiling.cleanup import OwnedResources
from poolwise.profiling.control_groups import ControlGroup, GroupUse

SAMPLE_S = 0.02
"""Seconds between two looks at what a running program uses."""
_JOIN = 'until [ "$1" = -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"'
_SHOWN = 400  # characters of a failed program's last words


@dataclass(frozen=True)
class ProgramRun:
    """What one run of a program took.

    Attributes
    ----------
    seconds : from start to end
    peak : bytes, largest working set seen, looked at every 20 ms
    swapped : bytes, most that lay in swap at once
    use : its counters at the end
    output : what it wrote on stdout, the last part
    """

    seconds: float
    peak: int
    swapped: int
    use: GroupUse
    output: str


def run_program(
    command: Sequence[str],
    group: ControlGroup,
    mine: OwnedResources,
    *,
    limit: int | None = None,
    cpu: float | None = None,
    longest_s: float,
) -> ProgramRun:
    """Run a command in a new group and take the group away.

    Parameters
    ----------
    limit
        Bytes of local memory; None for no limit.
    cpu
        Share of one processor's time; None for no limit.
    longest_s
        Seconds after which it is killed.

    Raises InputError where the program fails or takes too long, with its last words.
    """
    mine.add(group)
    group.make()
    try:
        if limit is not None:
            group.limit(limit)
        if cpu is not None:
            group.share_of_cpu(cpu)
        return _watch(command, group, longest_s)
    finally:
        group.remove()
        mine.things.remove(group)


def _watch(command: Sequence[str], group: ControlGroup, longest_s: float) -> ProgramRun:
    joining = ["/bin/sh", "-c", _JOIN, "join", *map(str, group.entrances), "--", *command]
    with tempfile.TemporaryFile() as said:
        begun = time.perf_counter()
        process = subprocess.Popen(joining, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        peak = swapped = 0
        try:
            while (code := _ended(process)) is None:
                now = group.use()
                peak, swapped = max(peak, now.working_set), max(swapped, now.swapped)
                if time.perf_counter() - begun > longest_s:
                    remedy = "leave out the smallest share, give it a smaller problem, or raise --longest"
                    raise InputError(f"it took longer than {longest_s:g} s", field="command", remedy=remedy)
            seconds = time.perf_counter() - begun
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        said.seek(max(said.tell() - _SHOWN, 0))
        words = said.read().decode(errors="replace").strip()
    if code:
        raise InputError(
            f"the program ended with {_reason(code)}: {words or 'it said nothing'}", field="command", remedy=_REMEDY
        )
    return ProgramRun(seconds, peak, swapped, group.use(), words)


_REMEDY = "run it by itself; where it was killed by signal 9, memory and swap together were too small"


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    """Exit code, waiting for it a moment."""
    try:
        return process.wait(SAMPLE_S)
    except subprocess.TimeoutExpired:
        return None


def _reason(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def memory_available() -> int:
    """Bytes that programs can have without swapping, as the kernel estimates."""
    rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(rows["MemAvailable"].split()[0]) * 1024
