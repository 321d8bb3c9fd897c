"""Device-network model: time by profile, co-located runs and links; profile files."""

from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Placement, Workload
from poolwise.performance.device_network import DeviceNetwork
from poolwise.performance.device_profiles import NUMBERS, device_profiles_csv, learn_device_profiles, read_device_profiles
from poolwise.performance.link_load import sites
from poolwise.quantities import SECOND
from poolwise.schedulers.flow import FlowScheduler
from tests.helpers.gpu_nodes import gpu_nodes

HEADER = "kind,local_s,spread,remote_s,loaded_s,goal_s,importance,link_mb_s,cpu_sensitivity,device_sensitivity,cores,memory_gib"
PROFILES = f"""# a comment
{HEADER},assumed,source
job,100,0,150,300,200,1,500,0.1,0.2,4,1,local_s goal_s,measured here
"""


@pytest.fixture
def profiles(tmp_path):
    path = tmp_path / "profiles.csv"
    path.write_text(PROFILES)
    return str(path)


def workload(n, *, submit=None, bandwidth=500):
    return Workload.of(
        np.zeros(n) if submit is None else np.array(submit) * SECOND,
        np.full(n, 100 * SECOND),
        requests={"cores": np.full(n, 4), "gpu": np.ones(n), "bandwidth": np.full(n, bandwidth)},
        attributes={"kind": np.full(n, "job")},
    )


def seconds(machine, jobs, profiles):
    model = DeviceNetwork(profiles)
    schedule = simulate(jobs, machine, FlowScheduler(settings={"profiles": profiles}), model=model).schedule
    return ((schedule.job_end - schedule.job_start) / SECOND).tolist()


def test_exclusive_job_with_a_local_device_takes_its_duration(profiles):
    assert seconds(gpu_nodes((1,)), workload(1), profiles) == [100]


def test_exclusive_job_behind_an_idle_network_takes_its_remote_time(profiles):
    assert seconds(gpu_nodes((0,), rack_gpus=1), workload(1), profiles) == [150]


def test_startup_takes_time_for_the_job_and_for_each_server_of_remote_devices(profiles):
    model = DeviceNetwork(profiles, start_s=3.0, server_s=5.0)
    columns = {"cores": np.ones(1), "gpu": np.full(1, 3)}
    job = Workload.of(np.zeros(1), np.full(1, 100 * SECOND), requests=columns, attributes={"kind": np.array(["job"])})
    for gpus, rack, expected in (((3,), 0, 103), ((1, 1), 1, 3 + 2 * 5 + 150)):
        scheduler = FlowScheduler(settings={"profiles": profiles})
        schedule = simulate(job, gpu_nodes(gpus, cores=1, rack_gpus=rack), scheduler, model=model).schedule
        assert (schedule.end[0] - schedule.start[0]) / SECOND == expected


def test_jobs_on_one_link_slow_each_other_down_until_one_ends(profiles):
    # Both send 500 of the 1000 MB/s of the rack's link: load 0.5 for each, twice as long at full load: 150 s * 1.5.
    machine = gpu_nodes((0, 0), cores=4, rack_gpus=2)
    assert seconds(machine, workload(2), profiles) == [225, 225]
    # The second arrives at 150 s; the first needs all of that time and has ended by then.
    assert seconds(machine, workload(2, submit=[0, 150]), profiles) == [150, 150]
    # Overlap of 75 s: 75 s alone, then at 2/3 of the speed until the first ends; the second has a third of its work left.
    first, second = seconds(machine, workload(2, submit=[0, 75]), profiles)
    assert first == pytest.approx(75 + 75 * 1.5)
    assert second == pytest.approx(112.5 + 150 - 75)


def test_slowdown_by_neighbors_is_proportional_to_their_cores_and_devices(profiles):
    # Each shares a node with the other, which has 4 of 8 cores and 1 of 2 devices: 1 + 0.1 / 2 + 0.2 / 2.
    assert seconds(gpu_nodes((2,)), workload(2), profiles) == pytest.approx([115, 115])


def test_kinds_without_a_profile_take_their_duration():
    assert seconds(gpu_nodes((0,), rack_gpus=1), workload(1), "catalog:rodinia") == [100]


def test_sites_of_a_placement_with_local_and_remote_devices():
    machine = gpu_nodes((1, 1), rack_gpus=1)  # owners: n0 n1, gpu0 gpu1 gpu2, link0 link1 link2
    used = sites(Placement.of([(0, 0, 0, 4), (0, 2, 2, 1), (0, 3, 2, 1), (0, 4, 2, 1)]), machine)
    assert (used.nodes, used.devices, used.device_nodes) == ((0,), (2, 3, 4), (0, 1))
    assert dict(zip(used.links, used.shares, strict=True)) == {5: 1.0, 6: 0.5, 7: 0.5}
    assert used.remote
    assert not sites(Placement.of([(0, 0, 0, 4), (0, 2, 2, 1)]), machine).remote


def test_shipped_profiles_match_the_numbers_of_the_paper():
    profiles = read_device_profiles("catalog:rodinia")
    assert len(profiles) == 8
    assert profiles["nw"].loaded_s / profiles["nw"].remote_s == pytest.approx((1 - 0.17) / (1 - 0.49), abs=1e-4)
    assert profiles["hotspot"].loaded_s / profiles["hotspot"].remote_s == pytest.approx((1 - 0.002) / (1 - 0.01), abs=1e-4)
    assert np.mean([p.local_s for p in profiles.values()]) == 75
    assert all(1.3 <= p.remote_s / p.local_s <= 1.65 for p in profiles.values())
    assert [kind for kind, p in profiles.items() if "loaded_s" not in p.assumed] == ["hotspot", "nw"]
    assert all(set(NUMBERS) - set(p.assumed) <= {"loaded_s"} for p in profiles.values())


def test_profiles_round_trip_through_a_file(tmp_path):
    profiles = read_device_profiles("catalog:rodinia")
    path = tmp_path / "again.csv"
    path.write_text(device_profiles_csv(profiles.values()))
    assert dict(read_device_profiles(path)) == dict(profiles)


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        (",goal_s,", ",goal,", 2, "goal_s"),
        ("job,100", "job,none", 3, "local_s"),
        ("job,100", "job,0", 3, "local_s"),
        (",200,1,500", ",200,11,500", 3, "importance"),
        (",4,1,local_s", ",4.5,1,local_s", 3, "cores"),
        ("local_s goal_s", "local", 3, "assumed"),
        ("measured here\n", "x\njob,100,0,150,300,200,1,500,0.1,0.2,4,1,,\n", 4, "kind"),
    ],
)
def test_invalid_profile_is_named_by_file_line_and_field(tmp_path, old, new, line, field):
    path = tmp_path / "p.csv"
    assert old in PROFILES
    path.write_text(PROFILES.replace(old, new))
    with pytest.raises(InputError) as error:
        read_device_profiles(path)
    assert (error.value.file, error.value.line, error.value.field) == (path, line, field)
    with pytest.raises(InputError, match="profile file not found"):
        read_device_profiles(tmp_path / "missing.csv")


def test_times_are_learned_from_finished_jobs_by_the_location_of_their_devices(profiles):
    profiles_of = read_device_profiles(profiles)
    wrong = replace(profiles_of["job"], local_s=50)
    schedule = simulate(workload(2), gpu_nodes((1, 0), cores=4), FlowScheduler(), model=DeviceNetwork(profiles)).schedule
    mine = learn_device_profiles(schedule, {"job": wrong, "other": profiles_of["job"]})
    assert (mine["job"].local_s, mine["job"].remote_s) == (100, 150)  # they run one after the other on the node with the GPU
    assert mine["other"] == profiles_of["job"]
    far = simulate(workload(1), gpu_nodes((0,), rack_gpus=1), FlowScheduler(), model=DeviceNetwork(profiles)).schedule
    learned = learn_device_profiles(far, profiles_of)["job"]
    assert (learned.local_s, learned.remote_s, learned.loaded_s) == (100, 150, 300)
    assert learned.assumed == ("local_s", "goal_s")
