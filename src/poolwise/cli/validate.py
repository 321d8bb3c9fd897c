"""`poolwise validate`: read a file and describe it, without running anything."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.cli.examples import examples


def validate(
    file: str = typer.Argument(
        help="A machine, scheduler, study, plan or search, a power table or price list, or the name of a shipped one."
    ),
    set_: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Replace a value of a study, plan or search first, as `run` does."
    ),
) -> None:
    """Check a file: every key, unit and name, and the trace that a study or plan reads."""
    for path in _find(file):
        _validate(path, set_)


def _validate(path: Path, set_: list[str]) -> None:
    from poolwise.errors import InputError
    from poolwise.files.document import Document
    from poolwise.files.kind import kind_of_file

    kind = kind_of_file(Document.read(path))
    if kind in ("study", "plan", "search"):
        {"study": _say_study, "plan": _say_plan, "search": _say_search}[kind](path, set_)
        return
    if set_:
        raise InputError(
            "--set changes studies, plans and searches only", file=path, field="--set", remedy=f"edit the {kind} file"
        )
    if kind == "machine":
        _say_machine(path)
    elif kind == "scheduler":
        _say_scheduler(path)
    else:
        _say_costs(path)


def _find(file: str) -> list[Path]:
    """The file, or all shipped ones of a name, whatever their kind."""
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


def _say_machine(path: Path) -> None:
    from poolwise.cli.console import out
    from poolwise.studies import load_machine

    machine = load_machine(path)
    words = [f"{amount} {what}" for what, amount in machine.summary().items()]
    out.print(f"{path}: a machine, {machine.name}", markup=False, highlight=False, soft_wrap=True)
    out.print(f"  {', '.join(words)}", markup=False, highlight=False, soft_wrap=True)


def _say_scheduler(path: Path) -> None:
    from poolwise.cli.console import out
    from poolwise.files.factory import parts
    from poolwise.files.scheduler import load_scheduler

    scheduler = load_scheduler(path)
    words = [f"kind {scheduler.kind}"]
    if scheduler.kind == "list":
        words = [f"{part} {choice}" for part, choice in zip(("order", "backfill", "placement"), parts(scheduler), strict=True)]
    if scheduler.scope is not None:
        words.append(f"scope {scheduler.scope}")
    if scheduler.pass_per_event:
        words.append("a pass per event")
    out.print(f"{path}: a scheduler, {scheduler.title or path.stem}", markup=False, highlight=False, soft_wrap=True)
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


def _say_search(path: Path, set_: list[str]) -> None:
    from poolwise.cli.console import out
    from poolwise.search.problem import load_search
    from poolwise.studies.study import parse_setting

    search = load_search(path, dict(parse_setting(text) for text in set_))
    out.print(f"{path}: a search, {search.title}", markup=False, highlight=False, soft_wrap=True)
    cells = ", ".join(f"{len(cells)} {split}" for split, cells in search.splits.items())
    words = f"  {search.budget.candidates:,} candidates in {len(search.space)} settings, on {cells} workloads"
    out.print(words, markup=False, highlight=False, soft_wrap=True)


def _say_plan(path: Path, set_: list[str]) -> None:
    from poolwise import registry
    from poolwise.cli.console import out
    from poolwise.plans import plan as plans
    from poolwise.studies.study import parse_setting

    plan = plans.load_plan(path, dict(parse_setting(text) for text in set_))
    what = (registry.find("plans", plan.kind).__doc__ or "").partition("\n")[0]
    out.print(f"{path}: a plan, {plan.title}", markup=False, highlight=False, soft_wrap=True)
    out.print(
        f"  kind {plan.kind}, of {plan.question.count_jobs():,} jobs: {what}", markup=False, highlight=False, soft_wrap=True
    )


def _say_costs(path: Path) -> None:
    from poolwise.cli.console import out
    from poolwise.files.costs import PowerFile, load_costs

    table = load_costs(path)
    names, what = (table.idle_watts, "power table") if isinstance(table, PowerFile) else (table.price, "price list")
    out.print(f"{path}: a {what}, {table.title or path.stem}", markup=False, highlight=False, soft_wrap=True)
    out.print(f"  of {', '.join(names)}", markup=False, highlight=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise validate cerit-pools"))(validate)
