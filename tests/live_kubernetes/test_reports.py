"""Conditions, events and log lines of waiting and started pods."""

from __future__ import annotations

import io
import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from poolwise.live import logs, wait_reasons
from poolwise.live.logs import PassLogger
from poolwise.live.platform import Pass
from poolwise.live.wait_reasons import WaitReporter
from poolwise.model import Arrival, CommitResult, EventBatch, Start
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make


def observe(driven: DrivenPlatform, observer: Any, *events: Any, outcome: CommitResult | None = None) -> None:
    """Show an observer the state after a pass."""
    batch = EventBatch(driven.platform.clock.now, events)
    done = outcome if outcome is not None else CommitResult((), (), (), {})
    observer.observe_pass(Pass(batch, done, driven.loop, driven.platform.snapshot(), 0.0, 0.0))


@pytest.mark.parametrize("placement", [FirstNodes(), Pooled()])
def test_every_waiting_pod_gets_its_reason_once(monkeypatch: pytest.MonkeyPatch, placement: Any) -> None:
    now, written = [1000.0], Counter[str]()
    monkeypatch.setattr(wait_reasons, "time", SimpleNamespace(monotonic=lambda: now[0]))
    kube = FakeKubernetes(make.node("n0", cpu="2"))
    for k in range(90):
        kube.add(make.pod(f"p{k:02d}", cpu="2" if k % 2 else "1", seconds=None))
    scheduler = ListScheduler(placement=placement)
    driven = kube.open(scheduler)
    monkeypatch.setattr(kube, "report_unschedulable", lambda pod, why: written.update([pod.metadata.key]))
    reporter = WaitReporter(driven.platform, scheduler, everyone=True)
    observe(driven, reporter)
    waiting = {f"default/p{k:02d}" for k in range(90)} - {f"default/{name}" for name in driven.nodes()}
    assert set(written) == waiting and set(written.values()) == {1} and len(waiting) > 80
    for _ in range(20):
        now[0] += wait_reasons.INTERVAL / 4
        observe(driven, reporter)
    assert written == Counter(waiting), "nothing changed"
    kube.add(make.pod("late", cpu="2", seconds=None))
    driven.settle()
    now[0] += wait_reasons.INTERVAL / 4
    observe(driven, reporter, Arrival(int(driven.loop.queue.jobs[-1])))
    assert written["default/late"] == 1, "before the next regular report"


def test_started_pods_get_an_event() -> None:
    kube = FakeKubernetes(make.node("n0"), make.pod("p", seconds=None))
    kube.open(ListScheduler(placement=FirstNodes()))
    assert kube.reported == [("default/p", "Scheduled", "Successfully assigned default/p to n0")]


def test_refused_start_is_logged_once_per_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(logs.logger, "handlers", [])
    logs.log_to(stream)
    kube = FakeKubernetes(make.node("n0"), make.pod("p", seconds=None))
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    (run,) = driven.platform.snapshot().runs()

    start, logger = Start(run.job, run.tasks, run.placement), PassLogger()
    for why in ("no device", "no device", "another pod", "no device"):
        observe(driven, logger, outcome=CommitResult((), ((start, why),), (), {}))
    observe(driven, logger, outcome=CommitResult((start,), (), ((start, run.id),), {}))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["event"], line.get("why")) for line in lines] == [
        ("start_refused", "no device"),
        ("start_refused", "another pod"),
        ("start_refused", "no device"),
        ("start", None),
    ]
