"""The public Python API: a few lines do what the command line does, and results show as tables."""

from pathlib import Path

import numpy as np
import pytest

import poolwise
from poolwise import api
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from tests.helpers import nvme_examples


@pytest.fixture(scope="module")
def run() -> poolwise.SimulatedRun:
    machine = poolwise.Machine.of_racks(2, 4, local=1024, pool=8192)
    workload = poolwise.Workload.of(
        np.arange(40) * 10**10,
        np.full(40, 10**11),
        requests={"nodes": 1 + np.arange(40) % 5, "memory": 512 * (1 + np.arange(40) % 6)},
    )
    return poolwise.simulate(workload, machine, order="fm", backfill="easy", engine="reference")


def test_every_public_name_is_there() -> None:
    for name in poolwise.__all__:
        assert getattr(poolwise, name) is not None
    with pytest.warns(DeprecationWarning, match="SimulatedRun"):
        assert poolwise.Run is poolwise.SimulatedRun
    with pytest.raises(AttributeError):
        poolwise.no_such_name  # noqa: B018  # the access is what is tested


def test_a_run_shows_itself_as_a_table(run: poolwise.SimulatedRun) -> None:
    html = run._repr_html_()
    assert html.count("<table>") == 1
    assert html.startswith("<p>Load 3.85: ")
    assert "mean bounded slowdown" in html
    assert "nan" not in html


def test_a_run_as_plain_data_has_no_number_that_json_lacks(run: poolwise.SimulatedRun) -> None:
    import json

    assert json.loads(json.dumps(run.to_dict(), allow_nan=False))["jobs"] == 40


def test_objects_do_as_well_as_names(run: poolwise.SimulatedRun) -> None:
    scheduler = poolwise.list_scheduler("fm", "easy", "racks", "rack")
    again = poolwise.simulate(
        run.schedule.workload, run.schedule.machine, scheduler=scheduler, engine="reference", baseline=run.schedule
    )
    assert np.array_equal(again.schedule.start, run.schedule.start)
    assert again.metrics["discrimination_s"] == 0.0


def test_note_on_jobs_that_hardly_need_pools() -> None:
    machine = poolwise.Machine.of_racks(1, 4, local=1024, pool=8192)
    small = poolwise.Workload.of(
        np.arange(5) * 10**9, np.full(5, 10**9), requests={"nodes": np.ones(5, int), "memory": np.full(5, 10)}
    )
    found = poolwise.simulate(small, machine, engine="reference")
    assert any("memory pools can have little effect" in note for note in found.notes)


def test_an_order_of_ones_own_is_found_by_its_file(tmp_path: Path, run: poolwise.SimulatedRun) -> None:
    (tmp_path / "mine.py").write_text(
        "class Longest:\n    kind = 'static'\n\n    def priority(self, queue, snapshot):\n"
        "        return queue.table.requested_s[queue.jobs]\n",
        encoding="utf-8",
    )
    mine = poolwise.simulate(
        run.schedule.workload, run.schedule.machine, order=f"{tmp_path / 'mine.py'}:Longest", engine="reference"
    )
    assert int(mine.schedule.done.sum()) == 40


MEMORY = poolwise.Workload.of(
    np.arange(30) * 10**9,
    np.full(30, 10**11),
    requests={"nodes": np.ones(30, int), "memory": np.full(30, 4096)},
)


def test_remote_memory_slows_down_unless_something_else_is_said() -> None:
    """On racks with pools the default is the model of remote memory, drawn with the run's seed."""
    machine = poolwise.Machine.of_racks(2, 4, local=1024, pool=65536)
    for engine in ("reference", "compiled"):
        default = poolwise.simulate(MEMORY, machine, seed=7, engine=engine).schedule
        said = poolwise.simulate(MEMORY, machine, truth=RemoteMemory(seed=7), engine=engine).schedule
        other = poolwise.simulate(MEMORY, machine, seed=8, engine=engine).schedule
        ideal = poolwise.simulate(MEMORY, machine, truth=Ideal(), engine=engine).schedule
        assert default.end.tolist() == said.end.tolist() != other.end.tolist()
        assert (ideal.job_end - ideal.job_start == 10**11).all()
        assert ((default.job_end - default.job_start)[default.done] > 10**11).all()


@pytest.mark.parametrize(
    ("machine", "model"),
    [
        (poolwise.Machine.of_racks(2, 4, local=1024, pool=65536), RemoteMemory(seed=3)),
        (poolwise.Machine.of_racks(2, 4, local=1024), Ideal()),
        (poolwise.Machine.flat(8), Ideal()),
        (nvme_examples.machine(fabric=100), Ideal()),  # a pool, but nodes that jobs share
    ],
    ids=["pools", "no pools", "flat", "shared nodes"],
)
def test_the_default_model_is_remote_memory_where_racks_have_pools(machine: poolwise.Machine, model: object) -> None:
    assert api.default_model(machine, 3) == model
