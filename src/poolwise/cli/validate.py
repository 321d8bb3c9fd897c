"""`poolwise validate`: read a machine or study file and say what it is, without running anything."""

from __future__ import annotations

from pathlib import Path

import typer


def validate(
    file: str = typer.Argument(help="A machine or study file, or the name of a shipped one."),
    set_: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Replace a value of a study first, as `run` does."),
) -> None:
    """Check a machine or study file: every key, unit and name, and the trace that a study reads."""
    from poolwise.errors import InputError
    from poolwise.studies.document import Document
    from poolwise.studies.machine_file import is_machine

    path = _find(file)
    if is_machine(Document.read(path)):
        if set_:
            raise InputError("--set changes studies only", file=path, field="--set", remedy="edit the machine file")
        _say_machine(path)
    else:
        _say_study(path, set_)


def _find(file: str) -> Path:
    from poolwise import catalog
    from poolwise.errors import UnknownNameError

    path = Path(file)
    if path.is_file() or path.suffix or len(path.parts) > 1:
        return path
    names = {name: kind for kind in ("machines", "studies") for name, _ in catalog.shipped(kind)}
    if file not in names:
        raise UnknownNameError.of("machine or study", file, names)
    return catalog.find(names[file], file)


def _say_machine(path: Path) -> None:
    from poolwise.cli.console import out
    from poolwise.model import Kind
    from poolwise.studies import load_machine
    from poolwise.units import format_memory

    machine = load_machine(path)
    nodes, pools = machine.of_kind(Kind.NODE), machine.of_kind(Kind.POOL)
    whole = machine.capacity[nodes, machine.resource("nodes")] if "nodes" in machine.resources else 0 * nodes
    counts = {
        "whole nodes": int(whole.sum()),
        "shared nodes": int((whole == 0).sum()),
        "pools": len(pools),
        "devices": len(machine.of_kind(Kind.DEVICE)),
        "links": len(machine.of_kind(Kind.LINK)),
    }
    words = [f"{count:,} {what}" for what, count in counts.items() if count]
    if "memory" in machine.resources:
        words.append(f"{format_memory(int(machine.capacity[pools, machine.resource('memory')].sum()))} of memory in pools")
    if whole.any():
        words.append(f"{format_memory(machine.local_memory)} in each whole node")
    out.print(f"{path}: a machine, {machine.name}", markup=False, highlight=False, soft_wrap=True)
    out.print(f"  {', '.join(words)}", markup=False, highlight=False, soft_wrap=True)


def _say_study(path: Path, set_: list[str]) -> None:
    from poolwise import studies
    from poolwise.cli.console import out
    from poolwise.studies.cells import workload_of
    from poolwise.studies.study import parse_setting

    study = studies.load(path, dict(parse_setting(text) for text in set_))
    jobs = " or ".join(f"{n:,}" for n in sorted({len(workload_of(cell)) for cell in study.cells}))
    out.print(f"{path}: a study, {study.title}", markup=False, highlight=False, soft_wrap=True)
    baselines = len(study.runs) - len(study.cells)
    out.print(f"  {len(study.cells):,} cells and {baselines:,} baseline runs, of {jobs} jobs each", highlight=False)
    for parameter, values in study.vary.items():
        out.print(f"  {parameter}: {', '.join(map(str, values))}", markup=False, highlight=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(validate)
