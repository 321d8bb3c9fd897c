"""Common parts of live runs: the control loop, its saved state, the record, metrics and endpoints."""

from __future__ import annotations

import ast
import io
import json
import threading
import urllib.request
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError

import pytest

from poolwise.conformance.cases import racks
from poolwise.conformance.fake_cluster import FakeCluster
from poolwise.errors import InputError, PolicyError
from poolwise.live import logs, wait_reasons
from poolwise.live.control_loop import drive, read_continuation
from poolwise.live.endpoints import serve_endpoints
from poolwise.live.logs import PassLogger
from poolwise.live.metrics import LiveMetrics
from poolwise.live.platform import LiveView
from poolwise.live.record import LiveRecord, PassRecorder
from poolwise.live.wait_reasons import WaitReporter
from poolwise.model import Changes
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler


class ReportingCluster(FakeCluster):
    """A fake cluster that can be stopped and stores the wait reasons that users see."""

    def __init__(self, *given, stop_after: int = 10**9) -> None:
        super().__init__(*given)
        self.told: dict[str, str] = {}
        self.left = stop_after

    def events(self):
        for batch in super().events():
            if self.left <= 0:
                return
            self.left -= 1
            yield batch

    def stop(self) -> None:
        self.left = 0

    def class_of(self, job: int) -> str:
        return "all"

    def report_wait(self, job: int, why: str) -> None:
        self.told[self.table.name(job)] = why


def test_live_run_is_driven_measured_recorded_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    logs.log_to(stream)
    cluster, scheduler = ReportingCluster(racks()), ListScheduler()
    metrics = LiveMetrics(cluster)
    record = PassRecorder(tmp_path / "r.jsonl", {"mode": "shadow"})
    tells = WaitReporter(cluster, scheduler, metrics, interval=0.0)
    keep = tmp_path / "continuation.json"
    result = drive(cluster, scheduler, keep=keep, observers=(PassLogger(), metrics, record, tells))
    record.close()
    runs = len(cluster.recorder)
    assert runs > 10 and not result.waiting
    value = metrics.registry.get_sample_value
    assert (
        value("poolwise_decisions_total", {"kind": "start"}) == runs == value("poolwise_wait_seconds_count", {"class": "all"})
    )
    assert value("poolwise_runs") == 0 and value("poolwise_queue_jobs", {"class": "all"}) == 0
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert sum(line["event"] == "start" for line in events) == runs
    read = LiveRecord.read(tmp_path / "r.jsonl")
    started = [job for job in read.jobs.values() if job.started is not None]
    assert len(started) == runs and all(job.decided == job.started and job.would == job.placement for job in started)
    assert all(job.submitted <= job.started <= job.ended for job in started)
    assert cluster.told and any("first fits after job" in why for why in cluster.told.values())
    assert read_continuation(keep).next_draw == len(cluster.table)


def test_inexplicable_wait_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def contradict(*_: object, **options: object) -> None:
        raise PolicyError("job 7 was left waiting")

    monkeypatch.setattr(wait_reasons, "why_waits", contradict)
    stream = io.StringIO()
    logs.log_to(stream)
    cluster, scheduler = ReportingCluster(racks()), ListScheduler()
    result = drive(cluster, scheduler, observers=(WaitReporter(cluster, scheduler, interval=0.0),))
    assert not result.waiting and len(cluster.recorder) > 10 and not cluster.told
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert events and {line["event"] for line in events} == {"wait_reason_missing"} and "was left waiting" in events[0]["why"]


def test_every_log_event_is_documented() -> None:
    for file in Path(logs.__file__).parents[1].rglob("*.py"):
        text = file.read_text("utf-8")
        calls = (node for node in ast.walk(ast.parse(text if "log_event" in text else "")) if isinstance(node, ast.Call))
        names = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "log_event"]
        logged = {name.value for name in names if isinstance(name, ast.Constant)}
        assert logged <= logs.EVENTS.keys(), f"{file}: {logged - logs.EVENTS.keys()}"


def test_partial_last_line_of_a_record_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    PassRecorder(path, {}).close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind":"started","jo')
    assert LiveRecord.read(path).torn == 21
    PassRecorder(path, {}).close()
    assert path.read_bytes() == whole + whole and LiveRecord.read(path).torn == 0
    path.write_text("something else\n")
    with pytest.raises(InputError, match="invalid line in a live record") as error:
        PassRecorder(path, {})
    assert error.value.line == 1 and path.read_text() == "something else\n"


def test_saved_state_is_read_or_rejected(tmp_path: Path) -> None:
    keep = tmp_path / "continuation.json"
    assert read_continuation(keep) is None and read_continuation(None) is None
    drive(ReportingCluster(racks(), stop_after=9), ListScheduler(), keep=keep)
    assert read_continuation(keep).passes
    keep.write_bytes(b"\xff")
    with pytest.raises(InputError):
        read_continuation(keep)


def test_run_ends_after_its_time_limit() -> None:
    class Endless(ReportingCluster):
        def events(self):
            batch = next(iter(super().events()))
            while self.left > 0:
                yield batch

    drive(Endless(racks()), ListScheduler(), seconds=0.2)
    assert threading.active_count() < 20


def test_view_of_a_cluster_does_not_change_it() -> None:
    view = LiveView.of(ReportingCluster(racks()))
    dispatcher = ListScheduler().open(view.snapshot.machine, 0)
    assert dispatcher.schedule(view.queue, view.snapshot, Changes()).starts
    name = view.queue.table.name(int(view.queue.jobs[0]))
    assert view.find(name) == int(view.queue.jobs[0])
    with pytest.raises(InputError, match="no waiting job is named unknown"):
        view.find("unknown")
    state = view.state("test")
    assert len(state.waiting) == len(view.queue) and not state.running


def test_endpoints_report_health_readiness_and_metrics() -> None:
    why = ["no snapshot yet"]
    metrics = LiveMetrics(ReportingCluster(racks()))
    with serve_endpoints(metrics.registry, lambda: why[0], 0) as (host, port):
        base = f"http://{host}:{port}"
        assert urllib.request.urlopen(f"{base}/healthz").read() == b"ok\n"
        with pytest.raises(HTTPError) as error:
            urllib.request.urlopen(f"{base}/readyz")
        assert error.value.code == 503 and error.value.read() == b"no snapshot yet\n"
        why[0] = ""
        assert urllib.request.urlopen(f"{base}/readyz").status == 200
        assert b"poolwise_leader 0.0" in urllib.request.urlopen(f"{base}/metrics").read()
        with pytest.raises(InputError, match="cannot bind"), serve_endpoints(metrics.registry, lambda: "", port):
            pass


def test_expected_times_have_date_and_zone() -> None:
    snapshot = SimpleNamespace(table=SimpleNamespace(epoch=1_772_323_200 * SECOND), now=0)
    text = wait_reasons.clock(60 * SECOND, snapshot)  # type: ignore[arg-type]
    assert datetime.strptime(text, "%Y-%m-%d %H:%M %z").timestamp() == 1_772_323_200 + 60
