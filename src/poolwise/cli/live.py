"""`poolwise live`: run schedulers on real clusters. Each platform's command is in a module of its own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poolwise import catalog
from poolwise.cli.app import app
from poolwise.cli.panels import SERVICE
from poolwise.errors import InputError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from poolwise.interfaces import Scheduler
    from poolwise.live.platform import LivePlatform
    from poolwise.model import Continuation

live_app = typer.Typer(help="Schedule a real cluster, or observe it in shadow mode.", no_args_is_help=True)


@dataclass(frozen=True)
class LiveOptions:
    """Options that the commands of all platforms share."""

    scheduler: Annotated[
        str, typer.Option(metavar="FILE", help="SCHEDULER.toml, or catalog:NAME (`poolwise list schedulers`).")
    ]
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for saved state to resume from, such as priorities that count passes."),
    ] = None
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append decisions and events to a file for `poolwise compare`.")
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0
    seconds: Annotated[
        float | None, typer.Option(min=0.0, help="Stop after this many seconds; otherwise run until stopped.")
    ] = None
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve /metrics, /healthz and /readyz on this port.", rich_help_panel=SERVICE),
    ] = None


def require_packages(extra: str, *modules: str) -> None:
    """Raise InputError unless the packages of an extra are installed."""
    from importlib.util import find_spec

    for module in ("prometheus_client", *modules):
        if find_spec(module) is None:
            raise InputError(f"the Python module {module} is missing", remedy=f"pip install 'poolwise[{extra}]'")


def named_scheduler(reference: str) -> Scheduler:
    """Return the scheduler that a file or catalog:NAME describes; raises InputError."""
    from poolwise.files.factory import scheduler_of
    from poolwise.files.scheduler import load_scheduler

    return scheduler_of(load_scheduler(catalog.resolve("schedulers", reference)))


def run_live(
    options: LiveOptions,
    mode: str,
    make: Callable[[Continuation | None], LivePlatform],
    scheduler: Scheduler | None = None,
    named: Scheduler | None = None,
    host: str = "127.0.0.1",
    register: Callable[[CollectorRegistry], None] | None = None,
    explain_all: bool = False,
) -> None:
    """Run a scheduler on a platform until it is stopped, resuming from the state of an earlier run.

    Parameters
    ----------
    options : options of the command
    mode : what the platform does with decisions, as the record names it
    make : makes the platform from the state of an earlier run, if any
    scheduler : scheduler that decides instead of the one that the options name, which still explains waits
    named : scheduler that replaces the one that the options name
    host : address on which the endpoints are served
    explain_all : whether each waiting job gets its first reason, not only the first ones of the queue
    register : adds the metrics of the platform to those of all platforms
    """
    from poolwise.live.control_loop import drive, read_continuation
    from poolwise.live.endpoints import serve_endpoints
    from poolwise.live.logs import PassLogger, log_event, log_to
    from poolwise.live.metrics import LiveMetrics
    from poolwise.live.platform import PassObserver
    from poolwise.live.record import PassRecorder
    from poolwise.live.wait_reasons import WaitReporter

    named = named if named is not None else named_scheduler(options.scheduler)
    log_to()
    keep = None
    if options.state is not None:
        options.state.mkdir(parents=True, exist_ok=True)
        keep = options.state / "continuation.json"
    continued = read_continuation(keep)
    platform = make(continued)
    metrics = LiveMetrics(platform)
    if register is not None:
        register(metrics.registry)
    metrics.leader.set(1)
    observers: list[PassObserver] = [PassLogger(), metrics, WaitReporter(platform, named, metrics, everyone=explain_all)]
    with ExitStack() as stack:
        stack.enter_context(rare_full_collections())
        if options.record is not None:
            record = PassRecorder(options.record, {"mode": mode, "scheduler": options.scheduler})
            stack.callback(record.close)
            observers.append(record)
        if options.port is not None:
            stack.enter_context(serve_endpoints(metrics.registry, lambda: "", options.port, host))
        drive(
            platform,
            scheduler if scheduler is not None else named,
            seed=options.seed,
            continued=continued,
            keep=keep,
            observers=observers,
            seconds=options.seconds,
        )
    log_event("stopped")


@contextmanager
def rare_full_collections() -> Iterator[None]:
    """Let Python collect young garbage in larger steps, and all garbage rarely, until the context ends.

    A pass allocates objects for each waiting job. With 5,000 waiting jobs, Python's defaults would start a full collection
    every few passes, which stops the scheduler for a tenth of a second.
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


app.add_typer(live_app, name="live")
