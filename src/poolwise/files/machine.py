"""Machine files: TOML descriptions that are read into a `Machine`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from poolwise import catalog, registry
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.fields import check_version, validate
from poolwise.files.machine_build import machine_of
from poolwise.files.machine_limits import with_machine_limits
from poolwise.files.machine_sections import MachineFile, to_file_tables
from poolwise.hashing import Json
from poolwise.model import Machine


class MachineFormat(Protocol):
    """An alternative description format of machines. Register with `@register("machine_formats", NAME)`."""

    def build(self) -> Machine:
        """Build the machine that the settings describe; raises InputError."""
        ...


class MachineDescription(NamedTuple):
    """A machine and its description.

    Attributes
    ----------
    machine : the machine
    content : everything in the description that a result depends on
    tables : the description as tables of a machine file, with absolute paths
    """

    machine: Machine
    content: Json
    tables: Json


def load_machine(file: str | Path) -> Machine:
    """Read a machine file, or a shipped machine by its name.

    Parameters
    ----------
    file
        MACHINE.toml, or the name of a shipped machine (`poolwise list machines`).

    Returns
    -------
    Machine

    Raises
    ------
    InputError
        The file is invalid; the error names file, line, field and remedy.

    Examples
    --------
    >>> import poolwise
    >>> poolwise.load_machine("cerit-racks").name
    'CERIT racks'
    """
    path = catalog.machine(file)
    return read_machine(Document.read(path), default=path.stem).machine


def read_machine(document: Document, path: tuple[str | int, ...] = (), default: str = "machine") -> MachineDescription:
    """Read the machine at `path` of a document, in any registered format; `default` is its name if none is given."""
    table: Any = document.tables
    for part in path:
        table = table[part]
    if "format" in table:
        return _in_format(document, table, tuple(str(part) for part in path))
    file = check_machine(document, path)
    content = file.content()
    machine = with_machine_limits(machine_of(file, default, document, path), file, document, path)
    order = [list(rack.nodes) for rack in file.rack]  # canonical JSON sorts keys, but the order of nodes matters
    return MachineDescription(machine, {**content, "order": order}, {**to_file_tables(content), "name": machine.name})


def _in_format(document: Document, table: Mapping[str, Any], path: tuple[str, ...]) -> MachineDescription:
    check_version(document, path)
    settings = {key: value for key, value in table.items() if key not in ("format", "version", "title", "name")}
    component = Component(name=str(table["format"]), **settings)
    component = component.resolve_paths(document.location((*path, "format"))[0].parent)
    with document.errors_at(*path, "format"):
        registry.find("machine_formats", component.name)
    with document.errors_at(*path):
        form: MachineFormat = component.make("machine_formats")
    built = _built(form, document, path)
    machine = replace(built, name=str(table["name"])) if "name" in table else built
    tables = {"version": 1, "format": component.name, "name": machine.name, **component.settings}
    return MachineDescription(machine, {"format": component.identity("machine_formats")}, tables)


def _built(form: MachineFormat, document: Document, path: tuple[str, ...]) -> Machine:
    """Build the machine; an error that already names one of the format's own files keeps its location."""
    try:
        return form.build()
    except InputError as error:
        if error.file is not None:
            raise
        where = path if error.field is None else (*path, error.field)
        raise document.error(where, error.message, error.remedy) from error


def check_machine(document: Document, path: tuple[str | int, ...] = ()) -> MachineFile:
    """Validate the machine at `path` of a document; raises InputError with file, line and field."""
    check_version(document, path, MachineFile)
    machine = validate(MachineFile, document, path)
    _check_names(machine, document, path)
    known = [node.name for node in machine.node]
    for k, rack in enumerate(machine.rack):
        for name in rack.nodes:
            if name not in known:
                raise document.unknown((*path, "rack", k, "nodes"), "node type", name, known)
    return machine


def _check_names(machine: MachineFile, document: Document, path: tuple[str | int, ...]) -> None:
    seen: dict[str, str] = {}
    for section in ("node", "rack", "pool", "device", "link"):
        for k, entry in enumerate(getattr(machine, section)):
            if entry.name is None:
                continue
            if entry.name in seen:
                raise document.error(
                    (*path, section, k, "name"),
                    f"the name '{entry.name}' is already used by a [[{seen[entry.name]}]] entry",
                    "give each node type, rack, pool, device and link a unique name",
                )
            seen[entry.name] = section
