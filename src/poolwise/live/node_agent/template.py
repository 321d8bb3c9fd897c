"""Texts with values of a claim and its device put in, each value held against a strict pattern first.

What a claim or a slice says was written by others. A value is one whole argument or a part of one, never shell text; it may
not begin an option, leave a folder, or hold blanks, control characters or anything else that its pattern does not name.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping

from poolwise.errors import InputError, UnknownNameError

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PATTERNS: Mapping[str, str] = {
    "driver": _NAME,
    "node": _NAME,
    "pool": rf"{_NAME}(?:/{_NAME})*",
    "device": _LABEL,
    "share": _UUID,
    "claim.uid": _UUID,
    "claim.name": _NAME,
    "claim.namespace": _LABEL,
}
"""What values look like, by placeholder."""
GROUPS: Mapping[str, str] = {
    "attribute": r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,63}",
    "capacity": r"[0-9]{1,18}(?:\.[0-9]{1,9})?(?:[mkMGTPE]|[KMGTPE]i)?",
}
"""The same for placeholders `group.name`, whatever the name."""
_INNER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_LONGEST = 253


def placeholders(text: str) -> list[str]:
    """Names in braces, in order; doubled braces stand for themselves. Raises InputError for braces that name nothing."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise _unreadable(text, str(error)) from None
    if any(name is not None and (spec or conversion or not name) for _, name, spec, conversion in parts):
        raise _unreadable(text, "a name alone stands in braces")
    return [name for _, name, _, _ in parts if name is not None]


def check_placeholders(texts: Iterable[str], patterns: Mapping[str, str]) -> None:
    """Refuse placeholders, and patterns for them, that no claim has a value for; raises InputError."""
    for name in [*(name for text in texts for name in placeholders(text)), *patterns]:
        group, _, inner = name.partition(".")
        if name not in PATTERNS and not (group in GROUPS and _INNER.fullmatch(inner)):
            raise UnknownNameError.of("placeholder", name, [*PATTERNS, *(f"{group}.NAME" for group in GROUPS)])


def checked(name: str, value: str, patterns: Mapping[str, str]) -> str:
    """Return a value that its pattern allows; raises InputError that names the placeholder, and shows the value escaped."""
    pattern = patterns.get(name) or PATTERNS.get(name) or GROUPS[name.partition(".")[0]]
    sound = len(value) <= _LONGEST and value.isprintable() and not value.startswith("-") and ".." not in value
    if not sound or not re.fullmatch(pattern, value):
        raise InputError(
            f"the value {value[:80]!r} of {{{name}}} is not put into commands or files",
            field=name,
            remedy=f"it must match {pattern}, without two dots together and without a hyphen in front",
        )
    return value


def filled(text: str, values: Mapping[str, str], patterns: Mapping[str, str]) -> str:
    """Put values in; raises InputError for one that is missing or that its pattern does not allow."""
    for name in placeholders(text):
        if name not in values:
            raise UnknownNameError.of("value", name, values, field=name)
    safe = {name: checked(name, values[name], patterns) for name in placeholders(text)}
    parts = string.Formatter().parse(text)
    return "".join(literal + ("" if name is None else safe[name]) for literal, name, _, _ in parts)


def _unreadable(text: str, why: str) -> InputError:
    remedy = "write names in braces, such as {attribute.address}, and other braces twice"
    return InputError(f"'{text}' cannot be read: {why}", remedy=remedy)
