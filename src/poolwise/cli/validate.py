"""`poolwise validate`: read a file and describe it, without running anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from poolwise.cli.examples import examples


@dataclass(frozen=True)
class FileSummary:
    """Description of a valid file.

    Attributes
    ----------
    path : the file
    kind : machine, scheduler, study, plan, search, power table or price list
    title : title of the file, or the name of what it describes
    lines : contents in short sentences
    """

    path: Path
    kind: str
    title: str
    lines: tuple[str, ...]


def validate(
    file: str = typer.Argument(
        metavar="FILE",
        help="A machine, scheduler, study, plan, search, power table or price list, or the name of a shipped one.",
    ),
    set_: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Replace a value of a study, plan or search first, as `run` does; repeatable."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Check a file without running anything.

    Checks every key, unit and name, and the trace that a study or plan reads.
    """
    from poolwise.cli.console import print_line
    from poolwise.cli.output import print_json, provenance

    found = [_summarize(path, set_) for path in _find(file)]
    if json:
        files = [{"file": str(one.path), "kind": one.kind, "title": one.title, "contents": list(one.lines)} for one in found]
        print_json({"files": files}, provenance(None, [one.path for one in found]))
        return
    for one in found:
        print_line(f"{one.path}: a {one.kind}, {one.title}")
        for line in one.lines:
            print_line(f"  {line}")


def _summarize(path: Path, set_: list[str]) -> FileSummary:
    from poolwise.errors import InputError
    from poolwise.files.document import Document
    from poolwise.files.kind import kind_of_file

    kind = kind_of_file(Document.read(path))
    if kind in ("study", "plan", "search"):
        return {"study": _study, "plan": _plan, "search": _search}[kind](path, set_)
    if set_:
        raise InputError(
            "--set changes studies, plans and searches only", file=path, field="--set", remedy=f"edit the {kind} file"
        )
    return {"machine": _machine, "scheduler": _scheduler}.get(kind, _costs)(path)


def _find(file: str) -> list[Path]:
    """Return the file, or all shipped files with that name, of any kind."""
    from poolwise import catalog
    from poolwise.errors import UnknownNameError
    from poolwise.files.kind import FOLDERS

    path = Path(file)
    if path.is_file() or path.suffix or len(path.parts) > 1:
        return [path]
    name = file.removeprefix(catalog.PREFIX)
    found = [(folder, shipped) for folder in FOLDERS.values() for shipped, _ in catalog.shipped(folder)]
    if not any(shipped == name for _, shipped in found):
        raise UnknownNameError.of("machine, scheduler, study, plan or search", name, [shipped for _, shipped in found])
    return [catalog.find(folder, name) for folder, shipped in found if shipped == name]


def _machine(path: Path) -> FileSummary:
    from poolwise.studies import load_machine

    machine = load_machine(path)
    parts = [f"{amount} {unit}" for unit, amount in machine.summary().items()]
    return FileSummary(path, "machine", machine.name, (", ".join(parts),))


def _scheduler(path: Path) -> FileSummary:
    from poolwise.files.factory import parts
    from poolwise.files.scheduler import load_scheduler

    scheduler = load_scheduler(path)
    words = [f"kind {scheduler.kind}"]
    if scheduler.kind == "list":
        words = [f"{part} {choice}" for part, choice in zip(("order", "backfill", "placement"), parts(scheduler), strict=True)]
    if scheduler.scope is not None:
        words.append(f"scope {scheduler.scope}")
    if scheduler.pass_per_event:
        words.append("one pass per event")
    return FileSummary(path, "scheduler", scheduler.title or path.stem, (", ".join(words),))


def _study(path: Path, set_: list[str]) -> FileSummary:
    from poolwise import studies
    from poolwise.studies.cells import workload_of
    from poolwise.studies.study import parse_setting

    study = studies.load(path, dict(parse_setting(text) for text in set_))
    jobs = " or ".join(f"{n:,}" for n in sorted({len(workload_of(cell)) for cell in study.cells}))
    baselines = len(study.runs) - len(study.cells)
    return FileSummary(
        path,
        "study",
        study.title,
        (
            f"{len(study.cells):,} cells and {baselines:,} baseline runs, of {jobs} jobs each",
            *(f"{parameter}: {', '.join(map(str, values))}" for parameter, values in study.vary.items()),
        ),
    )


def _search(path: Path, set_: list[str]) -> FileSummary:
    from poolwise.search.problem import load_search
    from poolwise.studies.study import parse_setting

    search = load_search(path, dict(parse_setting(text) for text in set_))
    cells = ", ".join(f"{len(cells)} {split}" for split, cells in search.splits.items())
    line = f"{search.budget.candidates:,} candidates in {len(search.space)} settings, on {cells} workloads"
    return FileSummary(path, "search", search.title, (line,))


def _plan(path: Path, set_: list[str]) -> FileSummary:
    from poolwise import registry
    from poolwise.plans import plan as plans
    from poolwise.studies.study import parse_setting

    plan = plans.load_plan(path, dict(parse_setting(text) for text in set_))
    description = (registry.find("plans", plan.kind).__doc__ or "").partition("\n")[0]
    line = f"kind {plan.kind}, of {plan.question.count_jobs():,} jobs: {description}"
    return FileSummary(path, "plan", plan.title, (line,))


def _costs(path: Path) -> FileSummary:
    from poolwise.files.costs import PowerFile, load_costs

    table = load_costs(path)
    names, kind = (table.idle_watts, "power table") if isinstance(table, PowerFile) else (table.price, "price list")
    return FileSummary(path, kind, table.title or path.stem, (f"of {', '.join(names)}",))


def register(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("poolwise validate cerit-pools"))(validate)
