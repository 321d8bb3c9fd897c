"""Functions of the facade on files: frames, comparisons, figures, plans, summaries, and errors."""

import numpy as np
import pytest

import poolwise
from poolwise.errors import InputError, ManyErrors
from poolwise.files.document import Document
from poolwise.quantities import SECOND
from poolwise.studies import study as studies

MACHINE = poolwise.Machine.of_racks(2, 16, local=64 * 1024, pool=2**20, cores=32, name="thin <nodes>")


@pytest.fixture(scope="module")
def workload():
    return poolwise.read("catalog:example-sacct.txt", MACHINE)


def test_frame_of_a_run_has_one_row_per_job(workload):
    run = poolwise.simulate(workload, MACHINE, engine="reference")
    frame = run.frame()
    assert frame["id"].to_list() == workload.id.tolist()
    ran = run.outcomes.start >= 0
    assert np.isnan(frame["wait_s"].to_numpy()[~ran]).all()
    assert frame["wait_s"].to_numpy()[ran].mean() == pytest.approx(run.metrics["mean_wait_s"])
    assert frame["end_ns"].to_list() == run.outcomes.end.tolist()
    assert frame["logged_wait_s"].to_list() == pytest.approx(workload.attributes["wait_s"].tolist(), nan_ok=True)
    assert "&lt;nodes&gt;" in run._repr_html_()


def test_reprs_of_machines_and_workloads(workload):
    assert repr(MACHINE) == (
        "Machine 'thin <nodes>': 32 whole nodes, 2 pools, 2 TiB memory in pools, 64 GiB memory in each whole node"
    )
    assert "<td>whole nodes</td><td>32</td>" in MACHINE._repr_html_()
    days, hours = divmod(round(float(np.ptp(workload.submit)) / SECOND / 3600), 24)
    assert f"jobs {len(workload)}, submitted over {days} days {hours} h" in repr(workload)
    assert f"excluded {sum(workload.excluded.values())} rows" in repr(workload)
    for reason, count in workload.repaired.items():
        assert f"<td>repaired: {reason}</td><td>{count:,} rows</td>" in workload._repr_html_()


@pytest.mark.long
def test_studies_are_compared_and_drawn(kept_folder, tmp_path):
    from tests.helpers.small_study import STUDY  # noqa: F401  (the folder contains it)

    study = poolwise.load(next(kept_folder.glob("*study*.toml")))
    result = poolwise.run(study, tmp_path / "out", jobs=1)
    keys = result.frame()["key"].to_list()
    comparison = poolwise.compare(*(f"{tmp_path / 'out'}:{key[:12]}" for key in keys[:2]))
    assert len(comparison.runs) == 2
    assert len(poolwise.figures(comparison)) >= 1
    names = [figure.name for figure in poolwise.figures(result)]
    paths = poolwise.save_figures(result, tmp_path / "drawn")
    assert {path.stem for path in paths} == set(names)
    assert {path.suffix for path in paths} == {".png", ".svg", ".pdf"}


def test_plans_are_loaded_by_name():
    plan = poolwise.load_plan("gpu-share")
    assert (plan.name, plan.kind) == ("gpu-share", "deployment")


BAD = """titel = "x"
machine = "catalog:cerit-racks"
[workload]
jbs = 3
[scheduler]
order = 7
"""
NAMES = """version = 1
machine = "catalog:cerit-racks"
[workload]
trace = "nothing.swf"
[scheduler]
order = "fmm"
backfill = "eassy"
[performance]
model = "idael"
"""


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (BAD, ["version", "titel", "workload.jbs", "scheduler.order"]),
        (NAMES, ["workload.trace", "scheduler.order", "scheduler.backfill", "performance.model"]),
    ],
    ids=["keys", "names"],
)
def test_all_errors_of_a_file_are_reported_at_once(tmp_path, text, fields):
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(ManyErrors) as caught:
        studies.resolve(Document.read(path))
    assert [error.field for error in caught.value.errors] == fields
    assert all(error.remedy and str(error) in str(caught.value) for error in caught.value.errors)
    assert (caught.value.field, caught.value.line) == (caught.value.errors[0].field, caught.value.errors[0].line)
    import pickle

    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_single_error_is_not_wrapped(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(NAMES.replace("fmm", "fm").replace("eassy", "easy").replace("idael", "ideal"))
    with pytest.raises(InputError, match="no such file") as caught:
        studies.resolve(Document.read(path))
    assert not isinstance(caught.value, ManyErrors)
