"""Interface of workload generators, and their lookup and configuration by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Protocol, get_type_hints

from pydantic import TypeAdapter, ValidationError

from poolwise import registry
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Workload

MOST_JOBS = 10**8  # exceeds what memory holds; rejects a misplaced zero before it exhausts memory


class Generator(Protocol):
    """A workload model and its settings; a frozen dataclass.

    The same settings generate the same workload, byte for byte, and the first k of n jobs equal a workload of k jobs. Settings
    that fit the whole workload to a target are exceptions; their documentation says so.
    """

    @property
    def nodes(self) -> int:
        """Number of whole nodes of the machine that the jobs are intended for."""
        ...

    def generate(self) -> Workload:
        """Draw the jobs; raise InputError for settings out of range."""
        ...

    def generate_on(self, machine: Machine) -> Workload:
        """Draw the jobs for a machine; by default they do not depend on it."""
        return self.generate()


def generate(name: str, **settings: Any) -> Workload:
    """Draw a workload from a generator.

    Parameters
    ----------
    name
        Registered generator (`poolwise list generators`), "module:Name" or "file.py:Name".
    settings
        Fields of the generator, such as `jobs=1000, seed=3`.

    Returns
    -------
    Workload

    Raises
    ------
    UnknownNameError
        No generator has this name, or it does not have a setting.
    InputError
        A setting has a wrong type, or is out of range.

    Examples
    --------
    >>> import poolwise
    >>> len(poolwise.generate("juwels_like", jobs=100, seed=3))
    100
    """
    return configure(name, **settings).generate()


def configure(name: str, **settings: Any) -> Generator:
    """Configure the generator with a name: a registered one, "module:Name" or "file.py:Name".

    Raises UnknownNameError if the generator or a setting does not exist, and InputError if a setting has the wrong type;
    `generate` checks the ranges.
    """
    registered = registry.find("generators", name)
    checked = _checked(registered, name, settings) if isinstance(registered, type) and is_dataclass(registered) else settings
    generator: Generator = registry.make("generators", name, **checked)
    return generator


def _checked(implementation: type, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Check names and types of settings from a study or the command line; accept a whole number for a float."""
    defaults = {field.name: field.default for field in fields(implementation) if field.init}
    adapters, checked = _adapters(implementation), {}
    for key, value in settings.items():
        if key not in defaults:
            raise UnknownNameError.of(f"setting of generator '{name}':", key, defaults, field=key)
        try:
            checked[key] = adapters[key].validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"]
            raise InputError(
                f"generator '{name}': {problem}, got {value!r}", field=key, remedy=f"its default is {defaults[key]}"
            ) from error
    return checked


@lru_cache(maxsize=64)
def _adapters(implementation: type) -> Mapping[str, TypeAdapter[Any]]:
    """Return setting -> type validator of a generator, cached because a study may have a million seeds."""
    hints = get_type_hints(implementation)
    return {field.name: TypeAdapter(hints[field.name]) for field in fields(implementation) if field.init}


def check_setting_range(least: float, most: float = float("inf"), **settings: float) -> None:
    """Raise InputError, with the name of the setting, unless all settings are in [least, most]; NaN is out of range."""
    for name, value in settings.items():
        if not least <= value <= most:
            limit = f"at least {least:g}" if most == float("inf") else f"between {least:g} and {most:g}"
            raise InputError(f"{name} must be {limit}, got {value:g}", field=name, remedy=f"use a value {limit}")
