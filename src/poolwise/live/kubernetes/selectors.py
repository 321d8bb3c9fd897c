"""Expressions of CEL about devices: which devices a class or a request selects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import cel

from poolwise.errors import InputError
from poolwise.live.kubernetes.objects import DeviceSelector, PublishedDevice
from poolwise.live.kubernetes.quantity import parse_quantity

_BUILT_IN = re.compile(
    r"\W.*|_.*|size|has|in|all|exists|exists_one|map|filter|startsWith|endsWith|contains|matches|string|int|uint|double|type|dyn|bool|max|min"
)
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


class DescribedDevice:
    """A device as expressions see it; what was found of an expression is kept.

    Parameters
    ----------
    driver, device
        Who offers it, and what it is.
    """

    __slots__ = ("_known", "_variables", "device", "driver")

    def __init__(self, driver: str, device: PublishedDevice) -> None:
        self.driver, self.device = driver, device
        self._variables: dict[str, Any] | None = None
        self._known: dict[str, bool] = {}

    def selected(self, selectors: Iterable[DeviceSelector]) -> bool:
        """Whether all of some expressions hold. Raises InputError for one that cannot be read."""
        return all(self._holds(selector.cel.expression) for selector in selectors)

    def _holds(self, expression: str) -> bool:
        found = self._known.get(expression)
        if found is None:
            program = compiled(expression)
            if self._variables is None:
                self._variables = _variables(self.driver, self.device)
            try:
                found = program.execute(cel.Context(variables=self._variables, functions=_FUNCTIONS)) is True
            except (RuntimeError, TypeError, ValueError, LookupError):  # such as an attribute that this device does not have
                found = False
            self._known[expression] = found
        return found


@lru_cache(maxsize=4096)
def compiled(expression: str) -> Any:
    """Compile an expression; raises InputError for one that cannot be read, or uses what is not supported."""
    try:
        program = cel.compile(expression)
    except ValueError as error:
        raise InputError(f"'{expression}' cannot be read: {error}", field="selectors.cel.expression") from None
    lacking = [name for name in program.functions() if name not in _FUNCTIONS and not _BUILT_IN.fullmatch(name)]
    if lacking:
        raise InputError(
            f"the function {min(lacking)}() of CEL is not supported in '{expression}'",
            field="selectors.cel.expression",
            remedy="compare attributes, quantities and versions only",
        )
    return program


def _variables(driver: str, device: PublishedDevice) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {driver: {}}
    capacity: dict[str, dict[str, Any]] = {driver: {}}
    for name, value in device.attributes.items():
        domain, _, short = name.rpartition("/")
        kind, content = next(iter(value.items()))
        attributes.setdefault(domain or driver, {})[short] = _version(content) if kind == "version" else content
    for name, amount in device.capacity.items():
        domain, _, short = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[short] = _quantity(amount.value)
    shown = {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }
    return {"device": shown}


def _quantity(text: str) -> int:
    """A quantity in thousandths, as one number that CEL can hold."""
    return int(parse_quantity(text) * 1000)


def _version(text: str) -> list[Any]:
    """A semantic version as a list that compares like it: three numbers, then 0 and its parts before a release, else 1."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no version")
    before = match[4]
    parts = [] if before is None else [[0, int(p), ""] if p.isdigit() else [1, 0, p] for p in before.split(".")]
    return [int(match[1]), int(match[2]), int(match[3]), 1 if before is None else 0, parts]


def _compare(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "semver": _version,
    "isQuantity": lambda text: _reads(_quantity, text),
    "isSemver": lambda text: _reads(_version, text),
    "compareTo": _compare,
    "isGreaterThan": lambda a, b: bool(a > b),
    "isLessThan": lambda a, b: bool(a < b),
    "major": lambda version: version[0],
    "minor": lambda version: version[1],
    "patch": lambda version: version[2],
    "lowerAscii": lambda text: text.lower(),
    "upperAscii": lambda text: text.upper(),
}


def _reads(read: Any, text: str) -> bool:
    try:
        read(text)
    except (ValueError, InputError):
        return False
    return True
