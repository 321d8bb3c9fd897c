"""`poolwise live`: the schedulers of studies on real clusters. Each platform's command stands in a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from poolwise.interfaces import Scheduler
    from poolwise.live.platform import LivePlatform
    from poolwise.model import Continuation

live_app = typer.Typer(help="Schedule a real cluster, or watch what Poolwise would do there.", no_args_is_help=True)


@dataclass(frozen=True)
class LiveOptions:
    """What the commands of all platforms have in common.

    Attributes
    ----------
    scheduler : SCHEDULER.toml or catalog:NAME
    mode : what the platform does with decisions, as the record says it
    seed : seed of all that is drawn
    state : folder in which the run keeps what no cluster shows; None for none
    record : file to which decisions and what happened are appended; None for none
    port : port of the endpoints, 0 for one that the system chooses, None for none
    seconds : how long to run; None until stopped
    host : address on which the endpoints are served
    """

    scheduler: str
    mode: str
    seed: int
    state: Path | None
    record: Path | None
    port: int | None
    seconds: float | None
    host: str = "127.0.0.1"


def needs(extra: str, *modules: str) -> None:
    """Raise InputError where the packages of an extra are not installed."""
    from importlib.util import find_spec

    from poolwise.errors import InputError

    for module in ("prometheus_client", *modules):
        if find_spec(module) is None:
            raise InputError(f"the package with the module {module} is missing", remedy=f"pip install 'poolwise[{extra}]'")


def named_scheduler(reference: str) -> Scheduler:
    """Make the scheduler that a file or catalog:NAME describes; raises InputError."""
    from poolwise import catalog
    from poolwise.files.factory import scheduler_of
    from poolwise.files.scheduler import load_scheduler

    return scheduler_of(load_scheduler(catalog.resolve("schedulers", reference)))


def run_live(
    options: LiveOptions, make: Callable[[Continuation | None], LivePlatform], scheduler: Scheduler | None = None
) -> None:
    """Make a platform from what an earlier run left, and drive it until it is stopped.

    `scheduler` takes the place of the one that the options name.
    """
    from poolwise.live.control_loop import drive, read_continuation
    from poolwise.live.endpoints import serve_endpoints
    from poolwise.live.logs import PassLogger, log_event, log_to
    from poolwise.live.metrics import LiveMetrics
    from poolwise.live.platform import PassObserver
    from poolwise.live.record import PassRecorder
    from poolwise.live.wait_reasons import WaitReporter

    named = named_scheduler(options.scheduler)
    log_to()
    keep = None
    if options.state is not None:
        options.state.mkdir(parents=True, exist_ok=True)
        keep = options.state / "continuation.json"
    continued = read_continuation(keep)
    platform = make(continued)
    metrics = LiveMetrics(platform)
    metrics.leader.set(1)
    observers: list[PassObserver] = [PassLogger(), metrics, WaitReporter(platform, named, metrics)]
    with ExitStack() as stack:
        if options.record is not None:
            record = PassRecorder(options.record, {"mode": options.mode, "scheduler": options.scheduler})
            stack.callback(record.close)
            observers.append(record)
        if options.port is not None:
            host, port = stack.enter_context(serve_endpoints(metrics.registry, lambda: "", options.port, options.host))
            log_event("listening", host=host, port=port)
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


def register(app: typer.Typer) -> None:
    """Add the commands' common name."""
    app.add_typer(live_app, name="live")
