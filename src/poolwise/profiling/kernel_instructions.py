"""Instructions of programs that the kernel runs (eBPF), and how they are encoded: an assembler for the few that are needed.

Source: the kernel's documentation, "BPF Instruction Set Architecture" (RFC 9669). Registers are 0 to 10, of 64 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

_MAP_VALUE = 2  # what a 64-bit value refers to: a place in a map
_LOADS = {1: 0x71, 2: 0x69, 4: 0x61, 8: 0x79}  # opcodes by bytes


@dataclass(frozen=True)
class Instruction:
    """One instruction: registers by number, a jump by the label it goes to (or "" for none)."""

    code: int
    to: int = 0
    source: int = 0
    offset: int = 0
    value: int = 0
    label: str = ""


KernelLines = Sequence[Instruction | str]
"""A program: instructions, and labels for what follows them."""


def load(size: int, to: int, source: int, offset: int) -> Instruction:
    """Read 1, 2, 4 or 8 bytes at an offset from the address in `source`."""
    return Instruction(_LOADS[size], to, source, offset)


def copy(to: int, source: int) -> Instruction:
    """Let one register be another."""
    return Instruction(0xBF, to, source)


def let(to: int, value: int) -> Instruction:
    """Let a register be a number."""
    return Instruction(0xB7, to, value=value)


def add(to: int, value: int) -> Instruction:
    """Add a number, which may be negative."""
    return Instruction(0x07, to, value=value)


def subtract(to: int, source: int) -> Instruction:
    """Subtract a register."""
    return Instruction(0x1F, to, source)


def call(helper: int) -> Instruction:
    """Call a function of the kernel; its result is in register 0, registers 1 to 5 are lost."""
    return Instruction(0x85, value=helper)


def jump(label: str) -> Instruction:
    """Go on at a label."""
    return Instruction(0x05, label=label)


def jump_unless(register: int, value: int, label: str) -> Instruction:
    """Go on at a label unless the lower 32 bits of a register are a number."""
    return Instruction(0x56, register, value=value, label=label)


def jump_below(register: int, other: int, label: str) -> Instruction:
    """Go on at a label if a register is less than another, both without signs."""
    return Instruction(0xAD, register, other, label=label)


def place(to: int, counters: int, number: int) -> list[Instruction]:
    """Let a register be the address of a counter (see `new_counters`)."""
    return [Instruction(0x18, to, _MAP_VALUE, value=counters), Instruction(0, value=8 * number)]


def count(address: int, source: int) -> Instruction:
    """Add a register to the counter at an address, whatever other processors add meanwhile."""
    return Instruction(0xDB, address, source)


END = Instruction(0x95)


def assemble(lines: KernelLines) -> bytes:
    """Encode a program, jumps as distances. Raises KeyError for a label that is nowhere."""
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in lines:
        if isinstance(line, str):
            labels[line] = len(code)
        else:
            code.append(line)
    near = [replace(one, offset=labels[one.label] - at - 1) if one.label else one for at, one in enumerate(code)]
    return b"".join(
        struct.pack("<BBhI", one.code, one.to | one.source << 4, one.offset, one.value & 0xFFFFFFFF) for one in near
    )
