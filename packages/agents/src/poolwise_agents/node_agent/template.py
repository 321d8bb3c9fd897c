"""Templates filled with values of claims and devices; each value is first validated against a strict pattern.

Claims and slices are untrusted input. A value becomes a whole argument or a part of one, never shell code. It must not start an
option, escape from a folder, or contain blanks, control characters or anything else outside its pattern.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping

from poolwise.errors import InputError, UnknownNameError

LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAME = rf"{LABEL}(?:\.{LABEL})*"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PATTERNS: Mapping[str, str] = {
    "driver": _NAME,
    "node": _NAME,
    "pool": rf"{_NAME}(?:/{_NAME})*",
    "device": LABEL,
    "share": _UUID,
    "claim.uid": _UUID,
    "claim.name": _NAME,
    "claim.namespace": LABEL,
}
"""Patterns of values, by placeholder."""
GROUPS: Mapping[str, str] = {
    "attribute": r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,63}",
    "capacity": r"[0-9]{1,18}(?:\.[0-9]{1,9})?(?:[mkMGTPE]|[KMGTPE]i)?",
}
"""Patterns of values for placeholders `group.name` with any name."""
_INNER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_LONGEST = 253


def placeholders(text: str) -> list[str]:
    """Return the names in braces, in order; doubled braces are literal. Raises InputError for invalid braces."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise _template_error(text, str(error)) from None
    if any(name is not None and (spec or conversion or not name) for _, name, spec, conversion in parts):
        raise _template_error(text, "braces must contain only a name")
    return [name for _, name, _, _ in parts if name is not None]


def check_placeholders(texts: Iterable[str], patterns: Mapping[str, str]) -> None:
    """Check that all placeholders, and all names of patterns, are known; raises InputError."""
    for name in [*(name for text in texts for name in placeholders(text)), *patterns]:
        group, _, inner = name.partition(".")
        if name not in PATTERNS and not (group in GROUPS and _INNER.fullmatch(inner)):
            raise UnknownNameError.of("placeholder", name, [*PATTERNS, *(f"{group}.NAME" for group in GROUPS)])


def validate_value(name: str, value: str, patterns: Mapping[str, str]) -> str:
    """Return a value if it matches its pattern; raises InputError with the placeholder and the escaped value."""
    pattern = patterns.get(name) or PATTERNS.get(name) or GROUPS[name.partition(".")[0]]
    safe = len(value) <= _LONGEST and value.isprintable() and not value.startswith("-") and ".." not in value
    if not safe or not re.fullmatch(pattern, value):
        problem = f"the value {value[:80]!r} of {{{name}}} is not allowed in commands and files"
        remedy = f"it must match {pattern}, without two consecutive dots and without a leading hyphen"
        raise InputError(problem, field=name, remedy=remedy)
    return value


def fill(text: str, values: Mapping[str, str], patterns: Mapping[str, str]) -> str:
    """Replace placeholders with their values; raises InputError for a missing or invalid value."""
    for name in placeholders(text):
        if name not in values:
            raise UnknownNameError.of("value", name, values, field=name)
    safe = {name: validate_value(name, values[name], patterns) for name in placeholders(text)}
    parts = string.Formatter().parse(text)
    return "".join(literal + ("" if name is None else safe[name]) for literal, name, _, _ in parts)


def _template_error(text: str, why: str) -> InputError:
    remedy = "write names in braces, such as {attribute.address}, and double all other braces"
    return InputError(f"cannot parse '{text}': {why}", remedy=remedy)
