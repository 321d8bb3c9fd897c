"""CEL device selectors of device classes and requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import cel

from poolwise.errors import InputError
from poolwise.live.kubernetes.objects.device import DeviceSelector, PublishedDevice
from poolwise.live.kubernetes.quantity import parse_quantity

_BUILT_IN = re.compile(
    r"\W.*|_.*|size|has|in|all|exists|exists_one|map|filter|startsWith|endsWith|contains|matches|string|int|uint|double|type|dyn|bool|max|min"
)
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


class DescribedDevice:
    """A device as CEL expressions see it, with cached results."""

    __slots__ = ("_results", "_variables", "device", "driver")

    def __init__(self, driver: str, device: PublishedDevice) -> None:
        self.driver, self.device = driver, device
        self._variables: dict[str, Any] | None = None
        self._results: dict[str, bool] = {}

    def matches(self, selectors: Iterable[DeviceSelector]) -> bool:
        """Return whether all expressions are true; raise InputError for an invalid one."""
        return all(self._holds(selector.cel.expression) for selector in selectors)

    def _holds(self, expression: str) -> bool:
        matches = self._results.get(expression)
        if matches is None:
            program = compile_expression(expression)
            if self._variables is None:
                self._variables = _variables(self.driver, self.device)
            try:
                matches = program.execute(cel.Context(variables=self._variables, functions=_FUNCTIONS)) is True
            except (RuntimeError, TypeError, ValueError, LookupError):  # for example, the device lacks an attribute
                matches = False
            self._results[expression] = matches
        return matches


@lru_cache(maxsize=4096)
def compile_expression(expression: str) -> Any:
    """Compile an expression; raise InputError if it is invalid or uses an unsupported function."""
    try:
        program = cel.compile(expression)
    except ValueError as error:
        raise InputError(f"invalid expression '{expression}': {error}", field="selectors.cel.expression") from None
    lacking = [name for name in program.functions() if name not in _FUNCTIONS and not _BUILT_IN.fullmatch(name)]
    if lacking:
        problem = f"unsupported CEL function {min(lacking)}() in '{expression}'"
        remedy = "compare only attributes, quantities and versions"
        raise InputError(problem, field="selectors.cel.expression", remedy=remedy)
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
    variables = {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }
    return {"device": variables}


def _quantity(text: str) -> int:
    """Return a quantity in thousandths, as an integer that CEL can hold."""
    return int(parse_quantity(text) * 1000)


def _version(text: str) -> list[Any]:
    """Return a semantic version as a list that sorts like it: major, minor, patch, then 0 and pre-release parts, or 1."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid version '{text}'")
    before = match[4]
    parts = [] if before is None else [[0, int(p), ""] if p.isdigit() else [1, 0, p] for p in before.split(".")]
    return [int(match[1]), int(match[2]), int(match[3]), 1 if before is None else 0, parts]


def _compare(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "semver": _version,
    "isQuantity": lambda text: _parses(_quantity, text),
    "isSemver": lambda text: _parses(_version, text),
    "compareTo": _compare,
    "isGreaterThan": lambda a, b: bool(a > b),
    "isLessThan": lambda a, b: bool(a < b),
    "major": lambda version: version[0],
    "minor": lambda version: version[1],
    "patch": lambda version: version[2],
    "lowerAscii": lambda text: text.lower(),
    "upperAscii": lambda text: text.upper(),
}


def _parses(read: Any, text: str) -> bool:
    try:
        read(text)
    except (ValueError, InputError):
        return False
    return True
