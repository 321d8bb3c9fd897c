"""Machine files: TOML that describes a machine, read into a `Machine`."""

from __future__ import annotations

from pathlib import Path

from poolwise.files.document import Document
from poolwise.files.fields import check_version, validate
from poolwise.files.machine_build import machine_of
from poolwise.files.machine_sections import MachineFile
from poolwise.model import Machine


def load_machine(file: Path) -> Machine:
    """Read a machine file; raises InputError naming file, line, field and remedy."""
    document = Document.read(file)
    return machine_of(check_machine(document), file.stem, document)


def check_machine(document: Document, path: tuple[str | int, ...] = ()) -> MachineFile:
    """Validate the machine at `path` of a document; raises InputError with file, line and field."""
    check_version(document, path)
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
                    f"the name '{entry.name}' is taken by a [[{seen[entry.name]}]]",
                    "give each node type, rack, pool, device and link a name of its own",
                )
            seen[entry.name] = section
