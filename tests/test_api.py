"""The public Python API: a few lines do what the command line does, and results show as tables."""

from pathlib import Path

import numpy as np
import pytest

import poolwise


@pytest.fixture(scope="module")
def run() -> poolwise.SimulatedRun:
    machine = poolwise.Machine.of_racks(2, 4, local=1024, pool=8192)
    workload = poolwise.Workload.of(
        np.arange(40) * 10**10,
        np.full(40, 10**11),
        requests={"nodes": 1 + np.arange(40) % 5, "memory": 512 * (1 + np.arange(40) % 6)},
    )
    return poolwise.simulate(workload, machine, order="fm", backfill="easy", engine_name="reference")


def test_every_public_name_is_there() -> None:
    for name in poolwise.__all__:
        assert getattr(poolwise, name) is not None
    assert poolwise.Run is poolwise.SimulatedRun  # the name it had first
    with pytest.raises(AttributeError):
        poolwise.no_such_name  # noqa: B018  # the access is what is tested


def test_a_run_shows_itself_as_a_table(run: poolwise.SimulatedRun) -> None:
    html = run._repr_html_()
    assert html.startswith("<table>")
    assert "mean bounded slowdown" in html
    assert "nan" not in html


def test_a_run_as_plain_data_has_no_number_that_json_lacks(run: poolwise.SimulatedRun) -> None:
    import json

    assert json.loads(json.dumps(run.to_dict(), allow_nan=False))["jobs"] == 40


def test_objects_do_as_well_as_names(run: poolwise.SimulatedRun) -> None:
    scheduler = poolwise.list_scheduler("fm", "easy", "racks", "rack")
    again = poolwise.simulate(
        run.schedule.workload, run.schedule.machine, scheduler=scheduler, engine_name="reference", baseline=run.schedule
    )
    assert np.array_equal(again.schedule.start, run.schedule.start)
    assert again.metrics["discrimination_s"] == 0.0


def test_jobs_that_hardly_need_pools_are_pointed_out() -> None:
    machine = poolwise.Machine.of_racks(1, 4, local=1024, pool=8192)
    small = poolwise.Workload.of(
        np.arange(5) * 10**9, np.full(5, 10**9), requests={"nodes": np.ones(5, int), "memory": np.full(5, 10)}
    )
    found = poolwise.simulate(small, machine, engine_name="reference")
    assert any("pools can hardly matter" in note for note in found.notes)


def test_an_order_of_ones_own_is_found_by_its_file(tmp_path: Path, run: poolwise.SimulatedRun) -> None:
    (tmp_path / "mine.py").write_text(
        "class Longest:\n    kind = 'static'\n\n    def priority(self, queue, snapshot):\n"
        "        return queue.table.requested_s[queue.jobs]\n",
        encoding="utf-8",
    )
    mine = poolwise.simulate(
        run.schedule.workload, run.schedule.machine, order=f"{tmp_path / 'mine.py'}:Longest", engine_name="reference"
    )
    assert int(mine.schedule.done.sum()) == 40
