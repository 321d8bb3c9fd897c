"""Swap in compressed memory on a newly created zram device; existing devices are never used.

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
from poolwise_agents.profiling.control_groups import write

CONTROL = Path("/sys/class/zram-control")
_UUID_AT = 1036  # bytes from the start of a swap device (`union swap_header` in the kernel's include/linux/swap.h)
TOP_PRIORITY = 32767  # highest swap priority, so that pages go to this device first


@dataclass(frozen=True)
class ZramSwap:
    """A zram device used as swap; `uuid` is the UUID of its swap area, by which it is identified."""

    number: int
    uuid: str

    @property
    def device(self) -> Path:
        """Block device."""
        return Path(f"/dev/zram{self.number}")

    @property
    def sysfs(self) -> Path:
        """Folder of the device's settings."""
        return Path(f"/sys/block/zram{self.number}")

    @property
    def kernel_device_number(self) -> int:
        """Device number as the kernel uses it internally and in traces: 12 bits of major, 20 of minor number."""
        major, _, minor = (self.sysfs / "dev").read_text().strip().partition(":")
        return int(major) << 20 | int(minor)

    @classmethod
    def add(cls) -> ZramSwap:
        """Create another device, which uses no memory yet; raises InputError if that is not possible."""
        if os.geteuid() != 0:
            raise InputError("only root can create swap", field="make-swap", remedy="run as root, or use existing swap")
        if others := top_priority_swaps():
            problem = f"{others[0]} also has the highest swap priority, so pages would go to both devices in turn"
            raise InputError(problem, field="make-swap", remedy="wait until the other measurement has ended")
        for program in ("mkswap", "swapon", "swapoff"):
            if shutil.which(program) is None:
                raise InputError(f"'{program}' is not installed", field="make-swap", remedy="install util-linux")
        if not CONTROL.exists() and shutil.which("modprobe"):
            subprocess.run(["modprobe", "zram", "num_devices=0"], check=False, capture_output=True)
        if not CONTROL.exists():
            remedy = "use a kernel with zram, or existing swap"
            raise InputError("the kernel does not support zram", file=CONTROL, field="make-swap", remedy=remedy)
        return cls(int((CONTROL / "hot_add").read_text()), str(uuid.uuid4()))

    def enable(self, size: int, compressor: str = "") -> None:
        """Set the size of the device (bytes), which also limits its memory, and enable it as the swap to use first."""
        try:
            if compressor:
                write(self.sysfs / "comp_algorithm", compressor)
            write(self.sysfs / "disksize", str(size))
            write(self.sysfs / "mem_limit", str(size))
            _run("mkswap", "-U", self.uuid, str(self.device))
        except BaseException:
            self._delete()  # a device without the UUID could not be identified later
            raise
        _run("swapon", "-p", str(TOP_PRIORITY), str(self.device))

    @property
    def is_present(self) -> bool:
        """True if the device exists and has this UUID."""
        if not self.sysfs.exists() or (self.sysfs / "disksize").read_text().strip() == "0":
            return False
        with self.device.open("rb") as content:
            content.seek(_UUID_AT)
            return uuid.UUID(bytes=content.read(16)) == uuid.UUID(self.uuid)

    def remove(self) -> None:
        """Stop swapping to the device and delete it; a different device with the same number is not touched."""
        if not self.is_present:
            return
        if str(self.device) in {name for name, _ in swaps()}:
            _run("swapoff", str(self.device))
        self._delete()

    def _delete(self) -> None:
        write(self.sysfs / "reset", "1")
        write(CONTROL / "hot_remove", str(self.number))

    @property
    def compressor(self) -> str:
        """Compression algorithm in use, the one in brackets."""
        chosen = (self.sysfs / "comp_algorithm").read_text()
        return chosen[chosen.index("[") + 1 : chosen.index("]")]


def swaps(file: Path = Path("/proc/swaps")) -> list[tuple[str, int]]:
    """Return (device, free bytes) of the active swaps."""
    rows = [line.split() for line in file.read_text().splitlines()[1:]]
    return [(row[0], (int(row[2]) - int(row[3])) * 1024) for row in rows]


def top_priority_swaps(file: Path = Path("/proc/swaps")) -> list[str]:
    """Return the active swap devices with `TOP_PRIORITY`."""
    return [row[0] for row in map(str.split, file.read_text().splitlines()[1:]) if int(row[4]) == TOP_PRIORITY]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        problem = done.stderr.strip() or f"exit code {done.returncode}"
        raise InputError(f"{command[0]} failed: {problem}", field="make-swap", remedy="check the kernel's log (dmesg)")
