"""State directories: round trips for any machine, and errors with their location."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.files.state import read_state, write_state
from poolwise.model import InitialRun, JobTable, Machine, MachineBuilder, MachineState, Partition, Placement
from poolwise.model.partition import AssociationLimits, QualityOfService, ReservedWindow
from poolwise.quantities import SECOND
from poolwise.studies import load_machine

ORIGIN = 1_800_000_000 * SECOND + 7


def rich() -> Machine:
    """Shared nodes with a device, a pool and a link; partitions, a QOS and a window."""
    build = MachineBuilder("rich")
    nodes = [build.node(f"cn{k:03}", cores=32, memory="256 GiB", rack=k // 2, attributes={"watts": 350.5}) for k in range(3)]
    build.pool("rack0.pool", memory="1 TiB")
    build.device("gpu", home=nodes[0], devices=1)
    build.link("port", nodes[0], "switch", bandwidth="10 GB/s", latency=700)
    machine = Machine.of(build)
    first = np.array([k == 0 for k in range(machine.n_owner)])
    return replace(
        machine,
        node_sets={"batch": ~first, "fast": first},
        partitions=(Partition("batch", True, 10 * SECOND, 2, 3), Partition("fast")),
        qos=(QualityOfService("normal", True, per_user=(("jobs", 3),), total=(("cores", 64),)),),
        associations=(
            AssociationLimits("chem", per_user=(("jobs", 2),), total=(("cores", 32),)),
            AssociationLimits("chem", "ann", max_time=9 * SECOND, per_job=(("nodes", 1),)),
            AssociationLimits("lab", parent="chem"),
        ),
        windows=(ReservedWindow("service", 5 * SECOND, 9 * SECOND, first, frozenset({"root"})),),
        licenses={"matlab": 10},
    )


def state_on(machine: Machine, seed: int, named: bool = True) -> MachineState:
    """Random jobs, of which some run if they fit."""
    g = np.random.default_rng(seed)
    n = int(g.integers(0, 8))
    submit = np.sort(g.integers(0, 50, n)) * SECOND
    owner, resource = (int(k) for k in np.argwhere(machine.capacity > 0)[0])
    jobs = JobTable(
        g.permutation(n) + 1,
        submit,
        g.integers(1, 9, n) * SECOND,
        g.integers(1, 3, n),
        {"nodes": np.ones(n, dtype=np.int64), "memory": g.integers(0, 99, n), "gpu": g.integers(0, 2, n)},
        {"user": g.choice(np.array(["ann", "b,o;b"]), n), "u": g.random(n), "queue": g.integers(0, 3, n)},
        draw=g.permutation(n),
        name=[f"job-{k}" for k in range(n)] if named else None,
        epoch=ORIGIN,
    )
    room = int(machine.capacity[owner, resource])
    working = min(n // 2, room)
    runs = [InitialRun(k, int(submit[k]) + k, Placement.of([(0, owner, resource, 1)])) for k in range(working)]
    return MachineState(machine, jobs, 60 * SECOND + 3, runs, np.arange(working, n), "a test", "catalog:fm")


def same_machine(one: Machine, other: Machine) -> bool:
    for name in ("name", "owners", "type", "resources", "partitions", "qos", "associations", "licenses"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("kind", "rack", "position", "home", "capacity"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ("per_node", "node_sets", "attributes"):
        mine, others = getattr(one, name), getattr(other, name)
        assert {k for k in mine if not k.startswith("_")} == set(others), name
        assert all(np.array_equal(mine[k], others[k], equal_nan=name == "attributes") for k in mine), name
    assert (one.fabric is None) == (other.fabric is None)
    if one.fabric is not None and other.fabric is not None:
        for name in ("vertex", "link", "ends", "latency"):
            assert np.array_equal(getattr(one.fabric, name), getattr(other.fabric, name)), name
    for mine, others in zip(one.windows, other.windows, strict=True):
        assert replace(mine, owners=others.owners).__dict__ == others.__dict__
        assert np.array_equal(mine.owners, others.owners)
    return True


def same_state(one: MachineState, other: MachineState) -> bool:
    rows = np.array([*(run.job for run in one.running), *one.waiting.tolist()], dtype=np.int64)
    mine, others = one.jobs.taken(rows), other.jobs
    assert (one.now, mine.epoch, one.source, one.scheduler) == (other.now, others.epoch, other.source, other.scheduler)
    for name in ("id", "submit", "requested", "tasks", "draw"):
        assert np.array_equal(getattr(mine, name), getattr(others, name)), name
    assert [mine.name(k) for k in range(len(mine))] == [others.name(k) for k in range(len(others))]
    for columns, read in ((mine.requests, others.requests), (mine.attributes, others.attributes)):
        assert not len(mine) or set(columns) == set(read)
        assert all(np.array_equal(columns[name], read[name]) for name in read)
    for run, again in zip(one.running, other.running, strict=True):
        assert run.start == again.start
        assert run.placement.rows() == again.placement.rows()
    assert np.array_equal(other.waiting, np.arange(len(one.running), len(rows)))
    return same_machine(one.machine, other.machine)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_state_round_trip(tmp_path_factory: pytest.TempPathFactory, seed: int, named: bool) -> None:
    on = (rich(), Machine.of_racks(2, 5, local=64, pool=1000, cores=4), Machine.flat(3))[seed % 3]
    state, folder = state_on(on, seed, named), tmp_path_factory.mktemp("state") / "seen"
    write_state(state, folder)
    assert same_state(state, read_state(folder))


@pytest.mark.parametrize("name", ["cerit-racks", "cerit-shared"])
def test_catalog_machines_round_trip_owner_by_owner(tmp_path: Path, name: str) -> None:
    from poolwise import catalog

    machine = load_machine(catalog.machine(name))
    write_state(state_on(machine, 3), tmp_path / "s")
    assert same_machine(machine, read_state(tmp_path / "s").machine)


def test_write_replaces_only_a_state_directory(tmp_path: Path) -> None:
    write_state(state_on(rich(), 1), tmp_path / "s")
    write_state(state_on(rich(), 5), tmp_path / "s")
    assert same_state(state_on(rich(), 5), read_state(tmp_path / "s"))
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match="not a state directory"):
        write_state(state_on(rich(), 1), tmp_path / "mine")
    with pytest.raises(InputError, match=r"not a state directory: state\.toml is missing"):
        read_state(tmp_path / "mine")


def test_failed_write_keeps_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_state(state_on(rich(), 5), tmp_path / "s")
    import poolwise.files.state as module

    def broken(path: Path, content: bytes) -> None:
        raise InputError("the disk is full", file=path)

    monkeypatch.setattr(module, "write_whole", broken)
    with pytest.raises(InputError, match="full"):
        write_state(state_on(rich(), 7), tmp_path / "s")
    assert same_state(state_on(rich(), 5), read_state(tmp_path / "s"))
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("running.csv", "cn000:memory=1", "cn009:memory=1", "line 2.*placement.*unknown owner 'cn009'"),
        ("running.csv", "cn000:memory=1", "cn000:memory=-1", "line 2.*'-1' is not a valid amount"),
        ("running.csv", "cn000:memory=1", "", "is an empty placement"),
        ("running.csv", "cn000:memory=1", "cn000:memory=999999", "the runs hold more memory than cn000 has"),
        ("state.toml", "running = 2", "running = 4", "2 rows, but state.toml states 4"),
        ("state.toml", "2027-01-15", "2027-21-15", "line 2.*origin"),
        ("state.toml", "version = 1", "version = 2", "unsupported version 2"),
        ("waiting.csv", "requested_ns", "wished_ns", "lacks requested_ns"),
        ("machine.toml", 'kind = "pool"', 'kind = "pond"', "unknown kind of owner 'pond'"),
    ],
)
def test_invalid_state_reports_its_location(tmp_path: Path, file: str, old: str, new: str, expected: str) -> None:
    write_state(state_on(rich(), 5), tmp_path / "s")
    path = tmp_path / "s" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=expected):
        read_state(tmp_path / "s")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("file", "other", "expected"),
    [
        ("waiting.csv", "waiting.csv", "is already in line 2"),
        ("running.csv", "running.csv", "is already in line 2"),
        ("waiting.csv", "running.csv", "is also in running.csv"),
    ],
)
def test_duplicate_job_names_are_errors(tmp_path: Path, file: str, other: str, expected: str, named: bool) -> None:
    folder = tmp_path / "s"
    write_state(state_on(rich(), 5, named), folder)
    taken = (folder / other).read_text().splitlines()[1].split(",")[0]
    header, first, second, *rest = (folder / file).read_text().splitlines()
    assert header.startswith("name,id," if named else "id,")
    (folder / file).write_text("\n".join([header, first, ",".join([taken, *second.split(",")[1:]]), *rest]) + "\n")
    field = "name" if named else "id"
    with pytest.raises(InputError, match=f"{file}, line 3, field '{field}': job {taken.strip(chr(34))} {expected}"):
        read_state(folder)


def test_inconsistent_states_are_errors() -> None:
    state = state_on(rich(), 5)
    with pytest.raises(InputError, match="runs or waits twice"):
        replace(state, waiting=np.array([0]))
    with pytest.raises(InputError, match="waits before its submission"):
        replace(state, now=0, running=())
    with pytest.raises(InputError, match="starts before its submission"):
        replace(state, running=(state.running[0]._replace(start=-1),))


def test_account_above_itself_is_an_error_in_a_state(tmp_path: Path) -> None:
    machine = replace(rich(), associations=(AssociationLimits("chem", parent="chem"),))
    write_state(state_on(machine, 1), tmp_path / "s")
    with pytest.raises(InputError, match="account 'chem' is its own ancestor"):
        read_state(tmp_path / "s")
