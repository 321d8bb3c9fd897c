"""One run of a program in its own control group, with its duration and resource usage."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from poolwise.errors import InputError
from poolwise_agents.profiling.cleanup import OwnedResources
from poolwise_agents.profiling.control_groups import ControlGroup, GroupUsage

SAMPLE_S = 0.02  # interval of usage samples of a running program (s)
_JOIN = 'until [ "$1" = -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"'
_MAX_OUTPUT = 400  # characters kept from the end of the output


@dataclass(frozen=True)
class ProgramRun:
    """Duration and resource usage of one run."""

    seconds: float  # from start to end
    peak: int  # largest sampled working set (bytes)
    swapped: int  # largest sampled swapped memory (bytes)
    use: GroupUsage  # counters at the end
    output: str  # end of the standard output


def run_program(
    command: Sequence[str],
    group: ControlGroup,
    owned: OwnedResources,
    *,
    limit: int | None = None,
    cpu: float | None = None,
    longest_s: float,
) -> ProgramRun:
    """Run a command in a new group, which is recorded in `owned` while it exists, and remove the group.

    `limit` is the command's local memory (bytes) and `cpu` its share of a processor; None means no limit. Raises InputError
    with the end of the output if the program fails or takes more than `longest_s` seconds.
    """
    owned.add(group)
    group.create()
    try:
        if limit is not None:
            group.set_limit(limit)
        if cpu is not None:
            group.set_cpu_share(cpu)
        return _watch(command, group, longest_s)
    finally:
        group.remove()
        owned.resources.remove(group)


def _watch(command: Sequence[str], group: ControlGroup, longest_s: float) -> ProgramRun:
    joining = ["/bin/sh", "-c", _JOIN, "join", *map(str, group.procs_files), "--", *command]
    with tempfile.TemporaryFile() as output:
        started_at = time.perf_counter()
        process = subprocess.Popen(joining, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        peak = swapped = 0
        try:
            while (code := _exit_code(process)) is None:
                now = group.usage()
                peak, swapped = max(peak, now.working_set), max(swapped, now.swapped)
                if time.perf_counter() - started_at > longest_s:
                    remedy = "omit the smallest share, reduce the problem size, or raise --longest"
                    raise InputError(f"the program took longer than {longest_s:g} s", field="command", remedy=remedy)
            seconds = time.perf_counter() - started_at
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        output.seek(max(output.tell() - _MAX_OUTPUT, 0))
        words = output.read().decode(errors="replace").strip()
    if code:
        raise InputError(
            f"the program ended with {_reason(code)}: {words or 'it printed nothing'}", field="command", remedy=_REMEDY
        )
    return ProgramRun(seconds, peak, swapped, group.usage(), words)


_REMEDY = "run the program without Poolwise; if signal 9 killed it, memory and swap together were too small"


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Wait for one sampling interval; return the exit code, None while the program runs."""
    try:
        return process.wait(SAMPLE_S)
    except subprocess.TimeoutExpired:
        return None


def _reason(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def memory_available() -> int:
    """Return the bytes that programs can allocate without swapping, as estimated by the kernel."""
    rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(rows["MemAvailable"].split()[0]) * 1024
