"""Studies of shared devices: scheduler components by name, tables relative to the study file, keys by content."""

import pytest

from poolwise.errors import InputError
from poolwise.files.factory import scheduler_of
from poolwise.policies.order.priorities import EDF, FCFS
from poolwise.policies.placement.nvme.policies import NvmeDisaggregationAware, NvmeMaximizeComposition
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.studies.cell_simulation import simulate_cell
from poolwise.studies.study import load

STUDY = """
version = 1
machine = "catalog:nvme-pooled"
[workload]
generator = "nvme_mix"
settings = { jobs = 30 }
[scheduler]
kind = "composition"
SCHEDULER
[performance]
model = { name = "nvme_sharing", tables = { bandwidth_bound = "TABLE" } }
[measure]
warm_up = 0
"""


@pytest.fixture
def study(tmp_path):
    (tmp_path / "table.csv").write_text("devices,1,2\n1,1500,1900\n")

    def write(scheduler="", table="table.csv"):
        path = tmp_path / "study.toml"
        path.write_text(STUDY.replace("SCHEDULER", scheduler).replace("TABLE", table))
        return path

    return write


def test_composition_scheduler_is_configured_by_names(study):
    (cell,) = load(study('order = "fcfs"\nplacement = { name = "nvme_maximize_composition", max_extension = 0.5 }')).cells
    assert scheduler_of(cell.scheduler) == CompositionScheduler(FCFS(), NvmeMaximizeComposition(max_extension=0.5))
    (cell,) = load(study()).cells
    assert scheduler_of(cell.scheduler) == CompositionScheduler(EDF(), NvmeDisaggregationAware())
    assert simulate_cell(cell).content["jobs"] == 30


def test_keys_distinguish_components(study):
    texts = ("", 'order = "fcfs"', 'placement = "nvme_first_fit"', 'placement = { name = "nvme_first_fit", share = true }')
    keys = {load(study(text)).cells[0].key for text in texts}
    assert len(keys) == len(texts)


def test_unsupported_component_reports_its_location(study):
    for line, words in (('backfill = "easy"', "does not support 'backfill'"), ('scope = "rack"', "does not support 'scope'")):
        with pytest.raises(InputError, match=words) as error:
            load(study(line))
        assert error.value.line == STUDY.splitlines().index("SCHEDULER") + 1
        assert error.value.field == f"scheduler.{line.split()[0]}"


def test_table_is_relative_to_the_study_and_its_content_is_in_the_key(study, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    key = load(study()).cells[0].key
    assert load(study()).cells[0].key == key
    (tmp_path / "table.csv").write_text("devices,1,2\n1,1500,1901\n")
    assert load(study()).cells[0].key != key
    (tmp_path / "table.csv").write_text("devices,1,2\n1,1500,much\n")
    with pytest.raises(InputError, match="'much' is not a time") as error:
        load(study())
    assert (error.value.line, error.value.field) == (2, "devices=1, sharers=2")
    with pytest.raises(InputError, match=r"performance table not found: none\.csv") as error:
        load(study(table="none.csv"))
    assert error.value.field == "performance.model"


def test_content_of_a_catalog_table_is_in_the_key(study, tmp_path, monkeypatch):
    from poolwise import catalog

    key = load(study(table="catalog:nvme-smufin.csv")).cells[0].key
    shipped = catalog.find("sharing_tables", "nvme-smufin.csv").read_bytes()
    (tmp_path / "sharing_tables").mkdir()
    (tmp_path / "sharing_tables" / "nvme-smufin.csv").write_bytes(shipped + b"# another\n")
    (tmp_path / "machines").symlink_to(catalog.FOLDER / "machines")
    monkeypatch.setattr(catalog, "FOLDER", tmp_path)
    assert load(study(table="catalog:nvme-smufin.csv")).cells[0].key != key
