"""Random mutations of files."""

from __future__ import annotations

import gzip
import random
import re

WORDS = (
    "", " ", "-1", "0", "1", "-0", "00", "1.5", "1e3", "1e300", "1e999", "-1e999", "nan", "inf", "-inf", "NaN", "None",
    "null", "Unknown", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616",
    "9" * 50, "4294967296", "2147483648", "1_000", "\u0663", "\uff11", "0x10", "1,5", "+7", "--7", "1 2", "\u00e9",
    "\U0001f600", "\x00", "\r", "\t", "'", '"', '""', ";", "|", "2026-03-01T00:00:00", "2026-02-30T00:00:00",
    "0001-01-01T00:00:00", "9999-12-31T23:59:59", "1969-12-31T23:59:59", "2026-03-29T02:30:00", "2026-10-25T02:30:00",
    "2026-03-01T00:00:00+99:99", "2026-03-01T00:00:00.999999999Z", "1772323200", "00:00:00", "99999-00:00:00",
    "1-02:03:04", "25:61:61", "4G", "16E?", "0n", "1.50Gn", "100Mc", "99999999T", "2048K", "4 GiB", "COMPLETED",
    "RUNNING", "REQUEUED", "CANCELLED by 7", "UNLIMITED", "Partition_Limit", "17.batch", "18_4", "18_[5-9]", "19+1",
    "A" * 300, "gres/gpu=99999999999", "gres/gpu:a100=2,gres/gpu=2", "exponential(7us)", "=SUM(A1)", "true", "False",
)  # fmt: skip
"""Cells that have broken table readers, in this project or others."""

_CELL = re.compile(rb"[^,;|\t\n ]+|(?<=[,;|\t])(?=[,;|\t\n])")
_NUMBER = re.compile(rb"[0-9]+")


def mutated(content: bytes, dice: random.Random) -> bytes:
    """Return a file after one to four mutations; a gzip file is damaged before compression or after it."""
    packed = content[:2] == b"\x1f\x8b"
    if packed and dice.random() < 0.7:
        return gzip.compress(_several(gzip.decompress(content), dice), compresslevel=1, mtime=0)
    return _several(content, dice)


def _several(content: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 4))):
        content = dice.choice(MUTATIONS)(content, dice)
    return content


def _cell(content: bytes, dice: random.Random) -> bytes:
    """Replace a cell with another word."""
    cells = [match.span() for match in _CELL.finditer(content)]
    if not cells:
        return content
    low, high = dice.choice(cells)
    word = dice.choice(WORDS) if dice.random() < 0.8 else str(dice.randrange(-(2 ** dice.randrange(1, 70)), 2**70))
    return content[:low] + word.encode() + content[high:]


def _swap(content: bytes, dice: random.Random) -> bytes:
    """Replace one cell with another, once or several times."""
    cells = [match.group() for match in _CELL.finditer(content)]
    if len(cells) < 2:
        return content
    cell, other = dice.choice(cells), dice.choice(cells)
    return content.replace(cell, other, dice.choice((1, 1, 3, -1))) if cell else content


def _digit(content: bytes, dice: random.Random) -> bytes:
    """Change the value or the sign of a number."""
    numbers = [match.span() for match in _NUMBER.finditer(content)]
    if not numbers:
        return content
    low, high = dice.choice(numbers)
    value = int(content[low : min(high, low + 40)])
    new = dice.choice((value + 1, value - 1, -value, value * 10, value * 2**32, value * 2**62, value // 10, 0))
    return content[:low] + str(new).encode() + content[high:]


def _bytes(content: bytes, dice: random.Random) -> bytes:
    """Change a few bytes."""
    changed = bytearray(content)
    for _ in range(dice.randrange(1, 5)):
        if changed:
            changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def _insert(content: bytes, dice: random.Random) -> bytes:
    """Insert characters at a random position."""
    at = dice.randrange(len(content) + 1)
    more = dice.choice(
        (b"\n", b"\r\n", b"\r", b",", b"|", b'"', b"\xef\xbb\xbf", b"\xff", b"\x00", b" ", b"\t", b"1", b"-", b"\xc3\xa9")
    )
    return content[:at] + more * dice.choice((1, 1, 1, 2, 7)) + content[at:]


def _cut(content: bytes, dice: random.Random) -> bytes:
    """Remove a part of the file, or everything after a position."""
    low = dice.randrange(len(content) + 1)
    high = len(content) if dice.random() < 0.4 else min(len(content), low + dice.randrange(1, 60))
    return content[:low] + content[high:]


def _lines(content: bytes, dice: random.Random) -> bytes:
    """Remove, repeat or reorder lines."""
    lines = content.split(b"\n")
    at = dice.randrange(len(lines))
    what = dice.randrange(5)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines[at:at] = [lines[at]] * dice.choice((1, 1, 2, 5))
    elif what == 2:
        dice.shuffle(lines)
    elif what == 3:
        lines.insert(at, lines[0])
    else:
        lines = lines[:1] + dice.sample(lines[1:], k=min(len(lines) - 1, dice.randrange(4)))
    return b"\n".join(lines)


def _column(content: bytes, dice: random.Random) -> bytes:
    """Change, remove or duplicate the name of a column."""
    head, newline, rest = content.partition(b"\n")
    names = [match.span() for match in _CELL.finditer(head)]
    if not names:
        return content
    low, high = dice.choice(names)
    other = head[slice(*dice.choice(names))]
    new = dice.choice(
        (b"", other, head[low:high].lower(), head[low:high] + b"_s", b"submit", b"duration", b"nodes", b"id", b"memory")
    )
    return head[:low] + new + head[high:] + newline + rest


MARKS = (
    (b",", b";"), (b";", b","), (b"|", b","), (b",", b"\t"), (b"\n", b"\r\n"), (b"\n", b"\r"), (b" ", b"  "), (b":", b"."),
)  # fmt: skip


def _marks(content: bytes, dice: random.Random) -> bytes:
    """Replace the delimiter or the line ending."""
    old, new = dice.choice(
        ((b",", b";"), (b";", b","), (b"|", b","), (b",", b"\t"), (b"\n", b"\r\n"), (b"\n", b"\r"), (b" ", b"  "), (b":", b"."))
    )
    return content.replace(old, new)


def _text(content: bytes, dice: random.Random) -> bytes:
    """Change the character encoding."""
    return content.decode("utf-8", "replace").encode(dice.choice(("latin-1", "utf-16", "utf-8-sig", "cp1252")), "replace")


MUTATIONS = (_cell, _cell, _cell, _cell, _swap, _digit, _digit, _bytes, _insert, _cut, _lines, _column, _marks, _text)
