"""Interpreter of the eBPF instructions (RFC 9669) that our kernel programs use."""

import struct
from collections.abc import Callable

WHOLE = 2**64 - 1


def run_kernel_program(code: bytes, record: bytes, counters: list[int], helpers: dict[int, Callable[[], int]]) -> int:
    """Run a program on a tracepoint record; return register 0. Addresses are (region, offset)."""
    rows = list(struct.iter_unpack("<BBhI", code))
    registers: list[object] = [None] * 11
    registers[1] = 0  # offset in the record, the only address besides those of counters
    at = 0
    for _ in range(10**6):
        opcode, both, offset, value = rows[at]
        to, source, at = both & 15, both >> 4, at + 1
        signed = value - 2**32 if value >> 31 else value
        a, b = registers[to], registers[source]
        if opcode == 0x95:
            return int(registers[0])  # type: ignore[call-overload]
        if opcode in (0x61, 0x71):
            size = {0x61: 4, 0x71: 1}[opcode]
            registers[to] = int.from_bytes(record[b + offset :][:size], "little")  # type: ignore[operator]
        elif opcode == 0x18:
            assert source == 2
            registers[to], at = ("counter", rows[at][3] // 8), at + 1
        elif opcode == 0xDB:
            counters[a[1]] = (counters[a[1]] + b) & WHOLE  # type: ignore[index]
        elif opcode == 0x85:
            registers[0] = helpers[value]()
            registers[1:6] = [None] * 5
        elif opcode == 0x05:
            at += offset
        elif opcode == 0x56:
            at += offset * ((a & (2**32 - 1)) != value)  # type: ignore[operator]
        elif opcode == 0xAD:
            at += offset * (a < b)  # type: ignore[operator]
        else:
            registers[to] = {0xBF: b, 0xB7: signed}.get(opcode) if opcode in (0xBF, 0xB7) else _sum(opcode, a, b, signed)
    raise AssertionError("the program does not end")


def _sum(opcode: int, a: object, b: object, value: int) -> int:
    assert isinstance(a, int)
    return (a + value if opcode == 0x07 else a - int(b)) & WHOLE  # type: ignore[call-overload]
