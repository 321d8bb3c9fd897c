"""What live runs have in common: driving, what is kept, the record, metrics and endpoints."""

from __future__ import annotations

import io
import json
import threading
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

from poolwise.conformance.cases import racks
from poolwise.conformance.fake_cluster import FakeCluster
from poolwise.errors import InputError, PolicyError
from poolwise.live import logs, wait_reasons
from poolwise.live.control_loop import drive, read_continuation
from poolwise.live.endpoints import serving
from poolwise.live.logs import LoggedPasses
from poolwise.live.metrics import LiveMetrics
from poolwise.live.platform import LiveView
from poolwise.live.record import LiveRecord, RecordedPasses
from poolwise.live.wait_reasons import ExplainsWaits
from poolwise.model import Changes
from poolwise.schedulers.list import ListScheduler


class TellingCluster(FakeCluster):
    """A cluster for tests that can be stopped and keeps what its users are told."""

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


def test_a_run_is_driven_counted_recorded_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    logs.log_to(stream)
    cluster, scheduler = TellingCluster(racks()), ListScheduler()
    metrics = LiveMetrics(cluster)
    record = RecordedPasses(tmp_path / "r.jsonl", {"mode": "shadow"})
    tells = ExplainsWaits(cluster, scheduler, metrics, interval=0.0)
    keep = tmp_path / "continuation.json"
    result = drive(cluster, scheduler, keep=keep, observers=(LoggedPasses(), metrics, record, tells))
    record.close()
    runs = len(cluster.recorder)
    assert runs > 10 and not result.waiting
    value = metrics.registry.get_sample_value
    assert (
        value("poolwise_decisions_total", {"kind": "start"}) == runs == value("poolwise_wait_seconds_count", {"class": "all"})
    )
    assert value("poolwise_runs") == 0 and value("poolwise_queue_jobs", {"class": "all"}) == 0
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert sum(line["event"] == "start" for line in said) == runs
    read = LiveRecord.read(tmp_path / "r.jsonl")
    started = [job for job in read.jobs.values() if job.started is not None]
    assert len(started) == runs and all(job.decided == job.started and job.would == job.placement for job in started)
    assert all(job.submitted <= job.started <= job.ended for job in started)
    assert cluster.told and any("first fits after job" in why for why in cluster.told.values())
    assert read_continuation(keep).next_draw == len(cluster.table)


def test_a_wait_that_cannot_be_explained_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def contradict(*_: object) -> None:
        raise PolicyError("job 7 was left waiting")

    monkeypatch.setattr(wait_reasons, "why_waits", contradict)
    stream = io.StringIO()
    logs.log_to(stream)
    cluster, scheduler = TellingCluster(racks()), ListScheduler()
    result = drive(cluster, scheduler, observers=(ExplainsWaits(cluster, scheduler, interval=0.0),))
    assert not result.waiting and len(cluster.recorder) > 10 and not cluster.told
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert said and {line["event"] for line in said} == {"unexplained"} and "was left waiting" in said[0]["why"]


def test_a_torn_record_is_mended_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    RecordedPasses(path, {}).close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind":"started","jo')
    assert LiveRecord.read(path).torn == 21
    RecordedPasses(path, {}).close()
    assert path.read_bytes() == whole + whole and LiveRecord.read(path).torn == 0
    path.write_text("something else\n")
    with pytest.raises(InputError, match="no line of a live record") as error:
        RecordedPasses(path, {})
    assert error.value.line == 1 and path.read_text() == "something else\n"


def test_what_was_kept_is_read_or_refused(tmp_path: Path) -> None:
    keep = tmp_path / "continuation.json"
    assert read_continuation(keep) is None and read_continuation(None) is None
    drive(TellingCluster(racks(), stop_after=9), ListScheduler(), keep=keep)
    assert read_continuation(keep).passes
    keep.write_bytes(b"\xff")
    with pytest.raises(InputError):
        read_continuation(keep)


def test_a_run_ends_after_some_seconds() -> None:
    class Endless(TellingCluster):
        def events(self):
            batch = next(iter(super().events()))
            while self.left > 0:
                yield batch

    drive(Endless(racks()), ListScheduler(), seconds=0.2)
    assert threading.active_count() < 20


def test_a_cluster_is_seen_without_being_changed() -> None:
    view = LiveView.of(TellingCluster(racks()))
    dispatcher = view.open(ListScheduler())
    assert dispatcher.schedule(view.queue, view.snapshot, Changes()).starts
    name = view.queue.table.name(int(view.queue.jobs[0]))
    assert view.find(name) == int(view.queue.jobs[0])
    with pytest.raises(InputError, match="does not wait here"):
        view.find("nobody")
    state = view.state("test")
    assert len(state.waiting) == len(view.queue) and not state.running


def test_endpoints() -> None:
    why = ["no snapshot yet"]
    metrics = LiveMetrics(TellingCluster(racks()))
    with serving(metrics.registry, lambda: why[0], 0) as (host, port):
        base = f"http://{host}:{port}"
        assert urllib.request.urlopen(f"{base}/healthz").read() == b"ok\n"
        with pytest.raises(HTTPError) as error:
            urllib.request.urlopen(f"{base}/readyz")
        assert error.value.code == 503 and error.value.read() == b"no snapshot yet\n"
        why[0] = ""
        assert urllib.request.urlopen(f"{base}/readyz").status == 200
        assert b"poolwise_leader 0.0" in urllib.request.urlopen(f"{base}/metrics").read()
        with pytest.raises(InputError, match="cannot be had"), serving(metrics.registry, lambda: "", port):
            pass
