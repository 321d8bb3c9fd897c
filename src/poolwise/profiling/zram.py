"""Swap in compressed memory: a zram device of one's own, never one that is there already.

Source: the kernel's documentation, "zram: Compressed RAM-based block devices".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from poolwise.errors import InputError
from poolwise.profiling.control_groups import write

CONTROL = Path("/sys/class/zram-control")
_UUID_AT = 1036  # bytes from the start of a swap device (`union swap_header` in the kernel's include/linux/swap.h)
FIRST = 32767
"""Priority among swaps: the highest, so that what is measured goes to this device."""


@dataclass(frozen=True)
class ZramSwap:
    """A zram device in use as swap; `mark` is the UUID of its swap area, by which it is known again."""

    number: int
    mark: str

    @property
    def device(self) -> Path:
        """Its block device."""
        return Path(f"/dev/zram{self.number}")

    @property
    def settings(self) -> Path:
        """Its folder of settings."""
        return Path(f"/sys/block/zram{self.number}")

    @property
    def number_in_kernel(self) -> int:
        """What the kernel tells devices apart by, within itself and in what it traces: 12 bits of kind, 20 of number."""
        major, _, minor = (self.settings / "dev").read_text().strip().partition(":")
        return int(major) << 20 | int(minor)

    @classmethod
    def add(cls) -> ZramSwap:
        """Ask the kernel for another device; it holds no memory yet. Raises InputError where that is not possible."""
        if os.geteuid() != 0:
            raise InputError(
                "swap can only be made by root", field="make-swap", remedy="run as root, or use swap that is there"
            )
        if others := swaps_ranked_first():
            problem = f"{others[0]} is swap of the highest priority too: pages would go to both in turn"
            raise InputError(problem, field="make-swap", remedy="wait until the other measurement has ended")
        for program in ("mkswap", "swapon", "swapoff"):
            if shutil.which(program) is None:
                raise InputError(f"no program '{program}'", field="make-swap", remedy="install util-linux")
        if not CONTROL.exists() and shutil.which("modprobe"):
            subprocess.run(["modprobe", "zram", "num_devices=0"], check=False, capture_output=True)
        if not CONTROL.exists():
            remedy = "use a kernel with zram, or swap that is there"
            raise InputError("the kernel has no zram", file=CONTROL, field="make-swap", remedy=remedy)
        return cls(int((CONTROL / "hot_add").read_text()), str(uuid.uuid4()))

    def begin(self, size: int, compressor: str = "") -> None:
        """Give the device so many bytes, never more memory than that, and swap to it first."""
        try:
            if compressor:
                write(self.settings / "comp_algorithm", compressor)
            write(self.settings / "disksize", str(size))
            write(self.settings / "mem_limit", str(size))
            _call("mkswap", "-U", self.mark, str(self.device))
        except BaseException:
            self._take_away()  # without its mark nobody would know it again
            raise
        _call("swapon", "-p", str(FIRST), str(self.device))

    @property
    def ours(self) -> bool:
        """Whether the device is there and marked as this one."""
        if not self.settings.exists() or (self.settings / "disksize").read_text().strip() == "0":
            return False
        with self.device.open("rb") as content:
            content.seek(_UUID_AT)
            return uuid.UUID(bytes=content.read(16)) == uuid.UUID(self.mark)

    def remove(self) -> None:
        """Stop swapping to it and take it away; another's device of the same number is left alone."""
        if not self.ours:
            return
        if str(self.device) in {name for name, _ in swaps()}:
            _call("swapoff", str(self.device))
        self._take_away()

    def _take_away(self) -> None:
        write(self.settings / "reset", "1")
        write(CONTROL / "hot_remove", str(self.number))

    @property
    def compressor(self) -> str:
        """The algorithm in use, the one in brackets."""
        chosen = (self.settings / "comp_algorithm").read_text()
        return chosen[chosen.index("[") + 1 : chosen.index("]")]


def swaps(file: Path = Path("/proc/swaps")) -> list[tuple[str, int]]:
    """(device, free bytes) of the swaps in use."""
    rows = [line.split() for line in file.read_text().splitlines()[1:]]
    return [(row[0], (int(row[2]) - int(row[3])) * 1024) for row in rows]


def swaps_ranked_first(file: Path = Path("/proc/swaps")) -> list[str]:
    """Devices in use as swap whose priority is that of ours."""
    return [row[0] for row in map(str.split, file.read_text().splitlines()[1:]) if int(row[4]) == FIRST]


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise InputError(f"{command[0]} failed: {said}", field="make-swap", remedy="check the kernel's log (dmesg)")
