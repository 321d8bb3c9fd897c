"""Machine files: TOML descriptions that are read into a `Machine`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from poolwise import catalog, registry
from poolwise.errors import InputError, UnknownNameError, errors_below
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.locate import Path as FieldPath
from poolwise.files.machine_build import machine_of
from poolwise.files.machine_sections import MachineFile, to_file_tables
from poolwise.files.validation import validate
from poolwise.hashing import Json
from poolwise.model import Machine


class MachineFormat(Protocol):
    """An alternative format for machine descriptions. Register with `@register("machine_formats", NAME)`."""

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


def read_machine(document: Document, path: FieldPath = (), default: str = "machine") -> MachineDescription:
    """Read the machine at `path` of a document, in any registered format; `default` is its name if the document gives none."""
    table = document.table(path)
    if "format" in table:
        return _in_format(document, table, path)
    file = check_machine(document, path)
    content = file.content()
    with document.errors_at(*path):
        machine = machine_of(file, default)
    order = [list(rack.nodes) for rack in file.rack]  # canonical JSON sorts keys, but the order of nodes matters
    return MachineDescription(machine, {**content, "order": order}, {**to_file_tables(content), "name": machine.name})


def _in_format(document: Document, table: Json, path: FieldPath) -> MachineDescription:
    document.check_version(path)
    settings = {key: value for key, value in table.items() if key not in ("format", "version", "title", "name")}
    folder = document.location((*path, "format")).file.parent
    with document.errors_at(*path):
        component = _known(Component(name=str(table["format"]), **settings), folder)
        form: MachineFormat = component.make("machine_formats")
    built = _built(form, document, path)
    machine = replace(built, name=str(table["name"])) if "name" in table else built
    tables = {"version": 1, "format": component.name, "name": machine.name, **component.settings}
    return MachineDescription(machine, {"format": component.identity("machine_formats")}, tables)


def _known(component: Component, folder: Path) -> Component:
    """Return the description of a machine in a registered format, with absolute paths."""
    with errors_below("format"):
        component = component.in_folder("machine_formats", folder)
        registry.find("machine_formats", component.name)
        return component


def machine_with_files(tables: Json, change: Callable[[str], str]) -> Json:
    """Apply a function to the files that a machine's tables name."""
    if "format" not in tables:
        return tables
    settings = {key: value for key, value in tables.items() if key not in ("format", "version", "name")}
    form = Component.of(str(tables["format"]), settings).with_files("machine_formats", change)
    return {"version": 1, "format": form.name, **({"name": tables["name"]} if "name" in tables else {}), **form.settings}


def _built(form: MachineFormat, document: Document, path: FieldPath) -> Machine:
    """Build the machine; an error that already names one of the format's own files keeps its location."""
    try:
        return form.build()
    except InputError as error:
        if error.file is not None:
            raise
        where = path if error.field is None else (*path, error.field)
        raise document.error(where, error.message, error.remedy) from error


def check_machine(document: Document, path: FieldPath = ()) -> MachineFile:
    """Validate the machine at `path` of a document; raises InputError with file, line and field."""
    machine = validate(MachineFile, document, path)
    types = [node.name for node in machine.node]
    with document.errors_at(*path):
        _check_names(machine)
        for k, rack in enumerate(machine.rack):
            for name in rack.nodes:
                if name not in types:
                    raise UnknownNameError.of("node type", name, types).at("rack", k, "nodes")
    return machine


def _check_names(machine: MachineFile) -> None:
    seen: dict[str | None, str] = {}
    for section in ("node", "rack", "pool", "device", "link"):
        for k, entry in enumerate(getattr(machine, section)):
            if entry.name is not None and entry.name in seen:
                raise InputError(
                    f"the name '{entry.name}' is already used by a [[{seen[entry.name]}]] entry",
                    remedy="give each node type, rack, pool, device and link a unique name",
                ).at(section, k, "name")
            seen[entry.name] = section
