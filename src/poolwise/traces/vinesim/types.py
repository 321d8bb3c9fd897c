"""Numbers and names of unit types and task types.

Source: VineSim, section 5.2.1; additional types are named in a TOML table.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from poolwise import catalog
from poolwise.errors import InputError, UnknownNameError
from poolwise.traces.text_files import read_text

UNITS = ("cpu-intel", "cpu-arm", "gpu", "fpga", "cpu-multicore", "unspecified")
TASKS = ("int", "fp-bad", "fp-good", "mem", "io", "arb", "unspecified")
_SECTIONS = {"unit_types": UNITS, "task_types": TASKS}


@dataclass(frozen=True)
class Types:
    """Names of unit types and task types; a type's number is its position."""

    units: tuple[str, ...] = UNITS
    tasks: tuple[str, ...] = TASKS

    @classmethod
    def of(cls, reference: str | Path | None) -> Types:
        """Read additional names from a file or "catalog:NAME"; without one, return the standard names."""
        return STANDARD if reference is None else cls.read(catalog.resolve("affinities", reference))

    @classmethod
    def read(cls, path: Path) -> Types:
        """Read additional names from a TOML table: `unit_types = ["tpu"]` gets number 6, `task_types = ["resnet"]` number 7.

        Raises InputError for invalid syntax, unknown keys and repeated names.
        """
        try:
            content = tomllib.loads(read_text(path))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"not a TOML file: {error}", file=path, remedy="correct the syntax") from error
        keys = {"version", *_SECTIONS}
        for key in content.keys() - keys:
            raise UnknownNameError.of("key", key, keys, file=path, field=key)
        if content.get("version") != 1:
            raise InputError("the version is missing or unknown", file=path, field="version", remedy="write version = 1")
        names = {}
        for section, standard in _SECTIONS.items():
            names[section] = (*standard, *_names(content.get(section, []), path, section))
            if len(set(names[section])) != len(names[section]):
                raise InputError("a name appears twice", file=path, field=section, remedy="give each type a unique name")
        return cls(names["unit_types"], names["task_types"])


STANDARD = Types()
"""Standard names only, without additions."""


def _names(value: object, path: Path, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(_is_name(name) for name in value):
        remedy = f'such as {field} = ["one", "two"]; a name does not begin with a digit or - and has no spaces or #'
        raise InputError("expected a list of names", file=path, field=field, remedy=remedy)
    return tuple(value)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.split() == [name] and "#" not in name and not name[0].isdigit() and name[0] != "-"
