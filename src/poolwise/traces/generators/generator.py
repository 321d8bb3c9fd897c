"""What a generator is, and how one is found by name and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Protocol, get_type_hints

from pydantic import TypeAdapter, ValidationError

from poolwise import registry
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Workload

MOST_JOBS = 10**8  # beyond what memory holds: a misplaced zero is found before it fills the machine


class Generator(Protocol):
    """A model of a workload and its settings, a frozen dataclass.

    The same settings give the same workload, byte for byte, and the first k of n jobs are those of a workload of k jobs
    (settings that fit a whole workload to a target say where this does not hold).
    """

    @property
    def nodes(self) -> int:
        """Whole nodes of the machine that the jobs are meant for."""
        ...

    def generate(self) -> Workload:
        """Draw the jobs. Raises InputError for settings out of their range."""
        ...


def generate(name: str, **settings: Any) -> Workload:
    """Draw a workload from a generator found by name; see `configure`."""
    return configure(name, **settings).generate()


def configure(name: str, **settings: Any) -> Generator:
    """Find a generator and configure it.

    Parameters
    ----------
    name
        A registered generator ("perlmutter_like", "juwels_like", "lublin"), "module:Name" or "file.py:Name".
    settings
        Its fields, such as `jobs=1000, seed=3`.

    Raises
    ------
    UnknownNameError
        No such generator, or no such setting.
    InputError
        A setting of the wrong type. Values out of range are found when it generates.
    """
    found = registry.find("generators", name)
    checked = _checked(found, name, settings) if isinstance(found, type) and is_dataclass(found) else settings
    generator: Generator = registry.make("generators", name, **checked)
    return generator


def _checked(found: type, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Check names and types of settings as a study or a command line gives them; a whole number will do for a float."""
    known = {field.name: field.default for field in fields(found) if field.init}
    adapters, checked = _adapters(found), {}
    for key, value in settings.items():
        if key not in known:
            raise UnknownNameError.of(f"setting of generator '{name}':", key, known, field=key)
        try:
            checked[key] = adapters[key].validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"]
            raise InputError(
                f"generator '{name}': {problem}, got {value!r}", field=key, remedy=f"its default is {known[key]}"
            ) from error
    return checked


@lru_cache(maxsize=64)
def _adapters(found: type) -> Mapping[str, TypeAdapter[Any]]:
    """Setting of a generator -> what checks its type; made once, as a study may have a million seeds."""
    hints = get_type_hints(found)
    return {field.name: TypeAdapter(hints[field.name]) for field in fields(found) if field.init}


def at_least(least: float, most: float = float("inf"), **settings: float) -> None:
    """Check that settings lie in [least, most]; NaN does not. Raises InputError that names the setting."""
    for name, value in settings.items():
        if not least <= value <= most:
            limit = f"at least {least:g}" if most == float("inf") else f"between {least:g} and {most:g}"
            raise InputError(f"{name} must be {limit}, got {value:g}", field=name, remedy=f"give a value {limit}")
