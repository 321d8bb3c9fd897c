"""Assembler for the eBPF instructions that Poolwise's kernel programs use.

Source: the kernel's documentation, "BPF Instruction Set Architecture" (RFC 9669). There are 64-bit registers 0 to 10.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

_MAP_VALUE = 2  # marks a 64-bit value as an address in a map
_LOADS = {1: 0x71, 2: 0x69, 4: 0x61, 8: 0x79}  # bytes -> opcode


@dataclass(frozen=True)
class Instruction:
    """One instruction, with registers by number; `label` is the target of a jump, "" for other instructions."""

    code: int
    to: int = 0
    source: int = 0
    offset: int = 0
    value: int = 0
    label: str = ""


KernelProgram = Sequence[Instruction | str]  # instructions, and labels of the instruction that follows them


def load(size: int, to: int, source: int, offset: int) -> Instruction:
    """Load 1, 2, 4 or 8 bytes from an offset to the address in `source`."""
    return Instruction(_LOADS[size], to, source, offset)


def copy(to: int, source: int) -> Instruction:
    """Copy a register."""
    return Instruction(0xBF, to, source)


def set_value(to: int, value: int) -> Instruction:
    """Set a register to a number."""
    return Instruction(0xB7, to, value=value)


def add(to: int, value: int) -> Instruction:
    """Add a number, which may be negative, to a register."""
    return Instruction(0x07, to, value=value)


def subtract(to: int, source: int) -> Instruction:
    """Subtract one register from another."""
    return Instruction(0x1F, to, source)


def call(helper: int) -> Instruction:
    """Call a kernel helper; its result is in register 0, and registers 1 to 5 are undefined afterwards."""
    return Instruction(0x85, value=helper)


def jump(label: str) -> Instruction:
    """Jump to a label."""
    return Instruction(0x05, label=label)


def jump_unless(register: int, value: int, label: str) -> Instruction:
    """Jump to a label unless the lower 32 bits of a register equal a number."""
    return Instruction(0x56, register, value=value, label=label)


def jump_below(register: int, other: int, label: str) -> Instruction:
    """Jump to a label if a register is less than another, both unsigned."""
    return Instruction(0xAD, register, other, label=label)


def load_counter_address(to: int, counters: int, number: int) -> list[Instruction]:
    """Set a register to the address of a counter (see `new_counters`)."""
    return [Instruction(0x18, to, _MAP_VALUE, value=counters), Instruction(0, value=8 * number)]


def atomic_add(address: int, source: int) -> Instruction:
    """Add a register atomically to the counter at an address."""
    return Instruction(0xDB, address, source)


END = Instruction(0x95)


def assemble(lines: KernelProgram) -> bytes:
    """Encode a program with relative jumps; raises KeyError for an undefined label."""
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in lines:
        if isinstance(line, str):
            labels[line] = len(code)
        else:
            code.append(line)
    resolved = [
        replace(instruction, offset=labels[instruction.label] - at - 1) if instruction.label else instruction
        for at, instruction in enumerate(code)
    ]
    return b"".join(
        struct.pack(
            "<BBhI",
            instruction.code,
            instruction.to | instruction.source << 4,
            instruction.offset,
            instruction.value & 0xFFFFFFFF,
        )
        for instruction in resolved
    )
