"""Programs of a few instructions that the kernel itself runs at one of its tracepoints (eBPF), and their counters.

Everything made here is an open file of this process: nothing of it outlives the process, however that ends.

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

from poolwise.profiling.kernel_instructions import KernelLines, assemble

CALLS = {
    "Linux x86_64": {"bpf": 321, "perf_event_open": 298, "fsopen": 430, "fsconfig": 431, "fsmount": 432},
    "Linux aarch64": {"bpf": 280, "perf_event_open": 241, "fsopen": 430, "fsconfig": 431, "fsmount": 432},
}
"""Numbers of system calls by system and machine."""
_MAP_CREATE, _MAP_LOOK_UP, _LOAD = 0, 1, 5  # commands of bpf(2)
_ARRAY, _AT_TRACEPOINT = 2, 5  # kinds of maps and of programs
_PERF_TRACEPOINT, _PERF_CLOSED_BY_EXEC, _PERF_LENGTH = 2, 8, 128
_SET_PROGRAM, _ENABLE = 0x40042408, 0x2400  # PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_ENABLE
_CREATE = 6  # FSCONFIG_CMD_CREATE
_FIELD = re.compile(r"^\tfield:(?P<name>[^;]+);\toffset:(?P<offset>\d+);\tsize:(?P<size>\d+);", re.MULTILINE)


@dataclass(frozen=True)
class Tracepoint:
    """A tracepoint: its number, and (offset, size) in bytes of the fields that a program at it can read."""

    number: int
    fields: Mapping[str, tuple[int, int]]

    @classmethod
    def parse(cls, text: str) -> Tracepoint:
        """Read what the kernel says of a tracepoint in its file `format`."""
        found = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
        if found is None:
            raise OSError(errno.EINVAL, "the format of the tracepoint has no ID")
        fields = {}
        for field in _FIELD.finditer(text):
            name = field["name"].split()[-1].partition("[")[0]
            fields[name] = (int(field["offset"]), int(field["size"]))
        return cls(int(found[1]), fields)

    @classmethod
    def find(cls, path: str) -> Tracepoint:
        """Look up a tracepoint such as "block/block_bio_queue", wherever the trace files are mounted, or if they are not."""
        with ExitStack() as held:
            asked = _held(held, _call("fsopen", b"tracefs", 1))
            _call("fsconfig", asked, _CREATE, None, None, 0)
            mounted = _held(held, _call("fsmount", asked, 1, 0))
            file = os.open(f"events/{path}/format", os.O_RDONLY | os.O_CLOEXEC, dir_fd=mounted)
            with os.fdopen(file, encoding="utf-8") as text:
                return cls.parse(text.read())


@contextmanager
def new_counters(number: int) -> Iterator[int]:
    """Keep so many counters of 64 bits, which programs add to; gives the file that names them."""
    with ExitStack() as held:
        yield _held(held, _bpf(_MAP_CREATE, struct.pack("<IIIII", _ARRAY, 4, 8 * number, 1, 0)))


def read_counters(counters: int, number: int) -> tuple[int, ...]:
    """Read counters."""
    key, found = ctypes.create_string_buffer(4), ctypes.create_string_buffer(8 * number)
    _bpf(_MAP_LOOK_UP, struct.pack("<IIQQQ", counters, 0, ctypes.addressof(key), ctypes.addressof(found), 0))
    return struct.unpack(f"<{number}Q", found.raw)


@contextmanager
def running(name: str, lines: KernelLines, tracepoint: Tracepoint) -> Iterator[None]:
    """Let the kernel run a program at each pass of a tracepoint on any processor, until the end of the context.

    Raises OSError where it may not, or where the kernel does not believe that the program ends and harms nothing.
    """
    code, licence = ctypes.create_string_buffer(assemble(lines)), ctypes.create_string_buffer(b"GPL")
    head = struct.pack("<IIQQ", _AT_TRACEPOINT, len(code) // 8, ctypes.addressof(code), ctypes.addressof(licence))
    with ExitStack() as held:
        program = _held(held, _bpf(_LOAD, head + bytes(24) + name.encode().ljust(16, b"\0")))
        about = ctypes.create_string_buffer(
            struct.pack("<IIQ", _PERF_TRACEPOINT, _PERF_LENGTH, tracepoint.number), _PERF_LENGTH
        )
        event = _held(held, _call("perf_event_open", about, -1, 0, -1, _PERF_CLOSED_BY_EXEC))  # programs run on all processors
        fcntl.ioctl(event, _SET_PROGRAM, program)
        fcntl.ioctl(event, _ENABLE, 0)
        yield


def _held(held: ExitStack, file: int) -> int:
    held.callback(os.close, file)
    return file


def _bpf(command: int, about: bytes) -> int:
    return _call("bpf", command, ctypes.create_string_buffer(about, len(about)), len(about))


def _call(name: str, *arguments: object) -> int:
    """Make a system call; raises OSError with its name."""
    system = f"{platform.system()} {platform.machine()}"
    if system not in CALLS:
        raise OSError(errno.ENOSYS, f"{name}: its number on {system} is not known")
    # a long number each, since C takes shorter ones from registers whose upper halves say anything
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    result = int(library.syscall(ctypes.c_long(CALLS[system][name]), *words))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result
