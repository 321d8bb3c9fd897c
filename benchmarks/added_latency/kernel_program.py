"""eBPF programs that the kernel runs at a tracepoint, and their counters.

All objects are open files of this process, so nothing outlives the process, even if it is killed.

Source: the kernel's documentation, "Event Tracing"; the manual pages bpf(2), perf_event_open(2) and fsopen(2).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.added_latency.kernel_instructions import KernelProgram, assemble

CALLS = {
    "Linux x86_64": {"bpf": 321, "perf_event_open": 298, "fsopen": 430, "fsconfig": 431, "fsmount": 432},
    "Linux aarch64": {"bpf": 280, "perf_event_open": 241, "fsopen": 430, "fsconfig": 431, "fsmount": 432},
}
"""System call numbers by system and machine."""
_MAP_CREATE, _MAP_LOOK_UP, _LOAD = 0, 1, 5  # commands of bpf(2)
_ARRAY, _AT_TRACEPOINT = 2, 5  # map type and program type
_PERF_TRACEPOINT, _PERF_CLOSED_BY_EXEC, _PERF_LENGTH = 2, 8, 128
_SET_PROGRAM, _ENABLE = 0x40042408, 0x2400  # PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_ENABLE
_CREATE = 6  # FSCONFIG_CMD_CREATE
_FIELD = re.compile(r"^\tfield:(?P<name>[^;]+);\toffset:(?P<offset>\d+);\tsize:(?P<size>\d+);", re.MULTILINE)


@dataclass(frozen=True)
class Tracepoint:
    """A tracepoint: its id, and (offset, size) in bytes of the fields that a program can read."""

    number: int
    fields: Mapping[str, tuple[int, int]]

    @classmethod
    def parse(cls, text: str) -> Tracepoint:
        """Parse the `format` file of a tracepoint; raises OSError without an id."""
        match = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
        if match is None:
            raise OSError(errno.EINVAL, "the format of the tracepoint has no ID")
        fields = {}
        for field in _FIELD.finditer(text):
            name = field["name"].split()[-1].partition("[")[0]
            fields[name] = (int(field["offset"]), int(field["size"]))
        return cls(int(match[1]), fields)

    @classmethod
    def find(cls, path: str) -> Tracepoint:
        """Return a tracepoint such as "block/block_bio_queue"; the trace file system need not be mounted."""
        with ExitStack() as stack:
            filesystem = _close_later(stack, _call("fsopen", b"tracefs", 1))
            _call("fsconfig", filesystem, _CREATE, None, None, 0)
            mounted = _close_later(stack, _call("fsmount", filesystem, 1, 0))
            file = os.open(f"events/{path}/format", os.O_RDONLY | os.O_CLOEXEC, dir_fd=mounted)
            with os.fdopen(file, encoding="utf-8") as text:
                return cls.parse(text.read())


@contextmanager
def new_counters(number: int) -> Iterator[int]:
    """Create 64-bit counters that programs can add to, and yield their file descriptor."""
    with ExitStack() as stack:
        yield _close_later(stack, _bpf(_MAP_CREATE, struct.pack("<IIIII", _ARRAY, 4, 8 * number, 1, 0)))


def read_counters(counters: int, number: int) -> tuple[int, ...]:
    """Return the values of counters."""
    key, values = ctypes.create_string_buffer(4), ctypes.create_string_buffer(8 * number)
    _bpf(_MAP_LOOK_UP, struct.pack("<IIQQQ", counters, 0, ctypes.addressof(key), ctypes.addressof(values), 0))
    return struct.unpack(f"<{number}Q", values.raw)


@contextmanager
def running(name: str, lines: KernelProgram, tracepoint: Tracepoint) -> Iterator[None]:
    """Run a program in the kernel at each hit of a tracepoint on any processor, while the context is open.

    Raises OSError without permission, or if the kernel's verifier rejects the program.
    """
    code, license_ = ctypes.create_string_buffer(assemble(lines)), ctypes.create_string_buffer(b"GPL")
    head = struct.pack("<IIQQ", _AT_TRACEPOINT, len(code) // 8, ctypes.addressof(code), ctypes.addressof(license_))
    with ExitStack() as stack:
        program = _close_later(stack, _bpf(_LOAD, head + bytes(24) + name.encode().ljust(16, b"\0")))
        attributes = ctypes.create_string_buffer(
            struct.pack("<IIQ", _PERF_TRACEPOINT, _PERF_LENGTH, tracepoint.number), _PERF_LENGTH
        )
        # the program runs on all processors
        event = _close_later(stack, _call("perf_event_open", attributes, -1, 0, -1, _PERF_CLOSED_BY_EXEC))
        fcntl.ioctl(event, _SET_PROGRAM, program)
        fcntl.ioctl(event, _ENABLE, 0)
        yield


def _close_later(stack: ExitStack, file: int) -> int:
    stack.callback(os.close, file)
    return file


def _bpf(command: int, attributes: bytes) -> int:
    return _call("bpf", command, ctypes.create_string_buffer(attributes, len(attributes)), len(attributes))


def _call(name: str, *arguments: object) -> int:
    """Make a system call; raises OSError naming the call."""
    system = f"{platform.system()} {platform.machine()}"
    if system not in CALLS:
        raise OSError(errno.ENOSYS, f"{name}: unknown system call number on {system}")
    # pass each number as a long, since C leaves the upper halves of registers undefined for shorter ones
    words = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    result = int(library.syscall(ctypes.c_long(CALLS[system][name]), *words))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result
