import json
from itertools import pairwise

import numpy as np

from nvme_examples import SHARING, machine, workload
from poolwise.engine import simulate
from poolwise.model import Machine, Workload
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.list import ListScheduler
from poolwise.timeline import trace_events, write_timeline


def schedules():
    jobs = workload([(60 * k, ("smufin", "fio", "compute")[k % 3]) for k in range(20)])
    yield simulate(machine(), jobs, CompositionScheduler(), truth=SHARING).schedule
    racks = Machine.of_racks(2, 4, local=100, pool=1000)
    count = np.arange(1, 21)
    batch = Workload.of(count * 10**9, count * 10**10, requests={"nodes": count % 5 + 1, "memory": count * 20})
    yield simulate(racks, batch, ListScheduler(), truth=RemoteMemory(), engine="reference").schedule


def test_every_run_is_on_every_owner_of_it_and_slices_of_a_track_never_overlap():
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


def test_counters_end_at_zero_and_never_exceed_what_is_there():
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


def test_the_file_is_one_json_object_and_the_same_each_time(tmp_path):
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        write_timeline(next(schedules()), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    content = json.loads(paths[0].read_bytes())
    assert {e["ph"] for e in content["traceEvents"]} == {"M", "X", "C"}
