import json
from itertools import pairwise

import numpy as np

from poolwise.engines import simulate
from poolwise.loop import LoopResult
from poolwise.model import Machine, Outcome, Placement, Workload
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.platforms.recorder import Recorder
from poolwise.report.timeline import MAX_NS_END, trace_events, write_timeline
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.list import ListScheduler
from tests.helpers.nvme_examples import SHARING, machine, workload


def schedules():
    jobs = workload([(60 * k, ("smufin", "fio", "compute")[k % 3]) for k in range(20)])
    yield simulate(jobs, machine(), CompositionScheduler(), model=SHARING).schedule
    racks = Machine.of_racks(2, 4, local=100, pool=1000)
    count = np.arange(1, 21)
    batch = Workload.of(count * 10**9, count * 10**10, requests={"nodes": count % 5 + 1, "memory": count * 20})
    yield simulate(batch, racks, ListScheduler(), model=RemoteMemory(), engine="reference").schedule


def test_runs_have_slices_on_all_owners_without_overlaps():
    for schedule in schedules():
        events = list(trace_events(schedule))
        slices = [e for e in events if e["ph"] == "X"]
        owners = [len({o for o, _, _ in schedule.placement_of(k)}) for k in range(schedule.n_run)]
        assert len(slices) == sum(owners)
        tracks = {}
        for e in slices:
            tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
        for spans in tracks.values():
            spans.sort()
            assert all(a[1] <= b[0] + 1e-3 for a, b in pairwise(spans))
        named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        assert tracks.keys() == named.keys()
        processes = {e["args"]["name"] for e in events if e["name"] == "process_name"}
        assert processes in ({"nodes", "devices"}, {"nodes", "pools"})


def test_slices_of_a_long_schedule_do_not_overlap_in_viewers():
    """Perfetto drops a slice that starts before the previous end; it uses doubles, which lose nanoseconds."""
    lengths = np.random.default_rng(0).integers(1, 10**12, 20_000)
    submit = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    jobs = Workload.of(submit, lengths, requests={"nodes": np.ones(len(lengths), dtype=np.int64)})
    schedule = simulate(jobs, Machine.flat(1), ListScheduler()).schedule
    assert int(schedule.end.max()) > MAX_NS_END
    slices = [e for e in trace_events(schedule) if e["ph"] == "X"]
    assert len(slices) == len(lengths)
    assert all(first["ts"] + first["dur"] == other["ts"] for first, other in pairwise(slices))  # no gaps


def test_events_conform_to_the_format():
    """Trace Event Format, JSON object form: requirements of chrome://tracing and Perfetto for the three phases used."""
    common = {"ph", "name", "pid"}
    required = {"M": {"tid", "args"}, "X": {"tid", "ts", "dur", "args", "cat"}, "C": {"ts", "args"}}
    for schedule in schedules():
        last = {}
        for e in json.loads(json.dumps(list(trace_events(schedule)), allow_nan=False)):
            assert e.keys() == common | required[e["ph"]]
            assert (type(e["pid"]), type(e["name"])) == (int, str)
            assert e["pid"] >= 1
            if e["ph"] == "M":
                assert e["name"] in {"process_name", "thread_name", "thread_sort_index"}
                assert list(e["args"]) == ["sort_index" if e["name"] == "thread_sort_index" else "name"]
            elif e["ph"] == "X":
                assert type(e["tid"]) is int
                assert min(e["tid"] - 1, e["ts"], e["dur"]) >= 0
            else:  # counters advance in time and keep their series
                assert all(type(value) is int for value in e["args"].values())
                before = last.get((e["pid"], e["name"]), {"ts": -1, "args": e["args"]})
                assert before["ts"] < e["ts"]
                assert before["args"].keys() == e["args"].keys()
                last[e["pid"], e["name"]] = e


def test_slice_contains_all_amounts_that_a_run_holds():
    two = Placement.of([(0, 0, 0, 1), (1, 0, 0, 2)])
    what, jobs = Machine.flat(4), Workload.of(np.array([0]), np.array([10**9]), tasks=np.array([2]))
    recorder = Recorder()
    recorder.ended(recorder.started(0, 2, 0, two), 10**9, Outcome.FINISHED)
    (event,) = [e for e in trace_events(recorder.schedule(jobs, what, LoopResult())) if e["ph"] == "X"]
    assert event["args"] == {"waited_s": 0.0, "nodes": 3}


def test_counters_end_at_zero_and_stay_within_capacity():
    for schedule in schedules():
        what, last = schedule.machine, {}
        for e in trace_events(schedule):
            if e["ph"] == "C":
                owner = what.owner(e["name"].removesuffix(" in use"))
                for resource, amount in e["args"].items():
                    assert 0 <= amount <= what.capacity[owner, what.resource(resource)]
                    last[owner, resource] = amount
        assert last
        assert set(last.values()) == {0}


def test_timeline_file_is_reproducible_json(tmp_path):
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        write_timeline(next(schedules()), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    content = json.loads(paths[0].read_bytes())
    assert {e["ph"] for e in content["traceEvents"]} == {"M", "X", "C"}
