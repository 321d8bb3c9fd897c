"""`poolwise validate`: read a file and describe it, without running anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poolwise import catalog
from poolwise.cli.app import app
from poolwise.cli.console import print_lines
from poolwise.cli.examples import command
from poolwise.cli.output import print_json, provenance
from poolwise.cli.shared_options import setting
from poolwise.errors import InputError, Problems, UnknownNameError
from poolwise.quantities import format_count

if TYPE_CHECKING:
    from poolwise.studies.cells import Cell

Summary = tuple[str, str, Sequence[str]]
"""Kind of a valid file, its title or the name of the described object, and its contents in short sentences."""


@command(app, "poolwise validate cerit-pools")
def validate(
    file: str = typer.Argument(
        metavar="FILE",
        help="A machine, scheduler, study, plan, search, power table or price list, or the name of a shipped one.",
    ),
    set_: list[Any] = setting("Replace a value of a study, plan or search first, as `run` does; repeatable."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Check a file without running anything.

    Checks every key, unit and name, and the trace that a study or plan reads.
    """
    summaries = {path: _summarize(path, set_) for path in _find(file)}
    if json:
        files = [
            {"file": str(path), "kind": kind, "title": title, "contents": [*lines]}
            for path, (kind, title, lines) in summaries.items()
        ]
        print_json({"files": files}, provenance(None, summaries))
        return
    for path, (kind, title, lines) in summaries.items():
        print_lines([f"{path}: a {kind}, {title}", *(f"  {line}" for line in lines)])


def _summarize(path: Path, set_: list[Any]) -> Summary:
    from poolwise.files.document import Document
    from poolwise.files.kind import kind_of_file

    kind = kind_of_file(Document.read(path))
    if kind in ("study", "plan", "search"):
        return {"study": _study, "plan": _plan, "search": _search}[kind](path, set_)
    if set_:
        raise InputError(
            "--set applies to studies, plans and searches only", file=path, field="--set", remedy=f"edit the {kind} file"
        )
    return {"machine": _machine, "scheduler": _scheduler}.get(kind, _costs)(path)


def _find(file: str) -> list[Path]:
    """Return the file, or all shipped files with that name, of any kind."""
    from poolwise.files.kind import FOLDERS

    path = Path(file)
    if path.is_file() or path.suffix or len(path.parts) > 1:
        return [path]
    name = file.removeprefix(catalog.PREFIX)
    files = [(folder, shipped) for folder in FOLDERS.values() for shipped, _ in catalog.shipped(folder)]
    if not any(shipped == name for _, shipped in files):
        raise UnknownNameError.of("machine, scheduler, study, plan or search", name, [shipped for _, shipped in files])
    return [catalog.find(folder, name) for folder, shipped in files if shipped == name]


def _machine(path: Path) -> Summary:
    from poolwise.studies import load_machine

    machine = load_machine(path)
    return "machine", machine.name, [machine.summary_text()]


def _scheduler(path: Path) -> Summary:
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
    return "scheduler", scheduler.title or path.stem, [", ".join(words)]


def _study(path: Path, set_: list[Any]) -> Summary:
    from poolwise import studies
    from poolwise.studies.cell_simulation import check_logs
    from poolwise.studies.cells import with_different_workloads, workload_of

    study = studies.load(path, dict(set_))
    problems, sizes = Problems(), set[int]()
    for cell in with_different_workloads(study.cells):
        with problems.attempt():
            sizes.add(len(workload_of(cell)))
    with problems.attempt():
        check_logs(study.runs)
    problems.finish()
    baselines = len({run.key for run in (*study.baselines, *study.memory_baselines)})
    runs = [format_count(len(study.cells), "cell"), format_count(baselines, "baseline run")]
    runs += [f"{len({run.key for run in study.today.values()}):,} of today's configuration"] if study.today else []
    jobs = " or ".join(f"{n:,}" for n in sorted(sizes))
    first = f"{', '.join(runs[:-1])} and {runs[-1]}, of {jobs} {'job' if sizes == {1} else 'jobs'} each"
    varied = (f"{parameter}: {', '.join(map(str, values))}" for parameter, values in study.vary.items())
    return "study", study.title, [first, *varied, *_slow(study.runs)]


def _slow(runs: Iterable[Cell]) -> list[str]:
    """Return a line for each reason why runs use the reference engine."""
    from poolwise.studies.slow_runs import slow_runs

    return [f"slow: {slow.text}" for slow in slow_runs(runs)]


def _search(path: Path, set_: list[Any]) -> Summary:
    from poolwise.search.problem import load_search

    search = load_search(path, dict(set_))
    cells = ", ".join(f"{len(cells)} {split}" for split, cells in search.splits.items())
    candidates, settings = format_count(search.budget.candidates, "candidate"), format_count(len(search.space), "setting")
    line = f"{candidates} in {settings}, on {cells} workloads"
    return "search", search.title, [line, *_slow(search.sample_runs())]


def _plan(path: Path, set_: list[Any]) -> Summary:
    from poolwise import registry
    from poolwise.plans import plan as plans

    plan = plans.load_plan(path, dict(set_))
    description = (registry.find("plans", plan.kind).__doc__ or "").partition("\n")[0]
    line = f"kind {plan.kind}, of {format_count(plan.problem.count_jobs(), 'job')}: {description}"
    return "plan", plan.title, [line, *_slow(plan.problem.sample_runs())]


def _costs(path: Path) -> Summary:
    from poolwise.files.costs import PowerFile, load_costs

    table = load_costs(path)
    names, kind = (table.idle_watts, "power table") if isinstance(table, PowerFile) else (table.price, "price list")
    return kind, table.title or path.stem, [f"of {', '.join(names)}"]
