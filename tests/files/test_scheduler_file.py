"""Scheduler files, including catalog ones, alone and in studies."""

from pathlib import Path

import numpy as np
import pytest

from poolwise import catalog
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.factory import scheduler_content, scheduler_of
from poolwise.files.kind import kind_of_file
from poolwise.files.scheduler import load_scheduler
from poolwise.files.study import SchedulerSection
from poolwise.model import Machine, Workload
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import F1, FCFS
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.preemption.tiers import TierPreemption
from poolwise.quantities import SECOND
from poolwise.registry import find
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WITHOUT_BACKFILL
from poolwise.studies import load

MINE = """\
version = 1
title = "mine"
order = { name = "f1", as_printed = true }
backfill = { name = "conservative", keep_reservations = true }
scope = "system"
pass_per_event = true
"""


def change(folder: Path, old: str, new: str) -> Path:
    text = (folder / "study.toml").read_text()
    assert text.count(old) == 1
    (folder / "study.toml").write_text(text.replace(old, new))
    return folder / "study.toml"


def by_file(folder: Path, reference: str, vary: str = "") -> Path:
    text = (folder / "study.toml").read_text()
    text = text.replace('[scheduler]\norder = "fm"\n', "").replace('"scheduler.order" = ["fcfs", "fm"]\n', vary)
    (folder / "study.toml").write_text(text.replace('machine = "', f'scheduler = "{reference}"\nmachine = "', 1))
    return folder / "study.toml"


@pytest.mark.parametrize("name", ["sjf", "fcfs", "wfp3", "f1", "fair", "fm"])
def test_catalog_contains_the_schedulers_of_the_paper(name):
    scheduler = scheduler_of(load_scheduler(catalog.find("schedulers", f"{name}-easy")))
    assert isinstance(scheduler, ListScheduler)
    assert (scheduler.order, scheduler.backfill) == (find("orders", name)(), Easy())
    assert scheduler.placement.scope == "rack"
    assert dict(catalog.shipped("schedulers"))[f"{name}-easy"].startswith(name.upper())


def test_catalog_schedulers_are_readable_and_recognized():
    for name, title in catalog.shipped("schedulers"):
        path = catalog.find("schedulers", name)
        assert load_scheduler(path).title == title
        assert kind_of_file(Document.read(path)) == "scheduler"
    assert scheduler_of(load_scheduler(catalog.find("schedulers", "f1-printed-easy"))).order == F1(as_printed=True)


def test_scheduler_file_equals_its_inline_content(folder):
    written = {cell.key for cell in load(folder / "study.toml", {"scheduler.order": "fm", "scheduler.scope": "rack"}).cells}
    path = by_file(folder, "catalog:fm-easy")
    assert {cell.key for cell in load(path).cells} == written
    assert load(path, {"scheduler.order": "sjf"}).cells[0].scheduler.order.name == "sjf", "--set can replace a component"
    (folder / "mine.toml").write_text(MINE)
    cell = load(path, {"scheduler": "mine.toml"}).cells[0]
    scheduler = scheduler_of(cell.scheduler)
    assert scheduler.order == F1(as_printed=True) and scheduler.backfill == Conservative(keep_reservations=True)
    assert scheduler.placement.scope == "system" and cell.scheduler.pass_per_event
    assert cell.baseline().scheduler.pass_per_event and cell.baseline().scheduler.scope == "system"


def test_varied_scheduler_files_share_baselines(folder):
    study = load(by_file(folder, "catalog:fm-easy", 'scheduler = ["catalog:fm-easy", "catalog:sjf-easy"]\n'))
    assert [cell.parameters["scheduler"] for cell in study.cells[::2]] == ["catalog:fm-easy", "catalog:sjf-easy"]
    assert [cell.scheduler.order.name for cell in study.cells[::2]] == ["fm", "sjf"]
    assert len(study.baselines) == 2, "one per pool size"
    assert all("scheduler" not in cell.parameters for cell in study.baselines)


def test_policy_file_is_relative_to_its_scheduler_file(folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "mine.py").write_text("from poolwise.policies.order.priorities import SJF\nMine = SJF\n")
    (folder / "deep" / "mine.toml").write_text('version = 1\norder = "mine.py:Mine"\n')
    cell = load(by_file(folder, "deep/mine.toml")).cells[0]
    assert cell.scheduler.order.name == f"{folder / 'deep' / 'mine.py'}:Mine"
    assert load_scheduler(folder / "deep" / "mine.toml").order == cell.scheduler.order


BROKEN = [
    ('order = "fmm"', 2, "scheduler.order", "did you mean 'fm'"),
    ('order = { name = "f1", printed = true }', 2, "scheduler.order.printed", "did you mean 'as_printed'"),
    ('backfil = "easy"', 2, "scheduler.backfil", "did you mean 'backfill'"),
    ('scope = "rak"', 2, "scheduler.scope", "did you mean 'rack'"),
    ('pass_per_event = "maybe"', 2, "scheduler.pass_per_event", "boolean"),
    ('kind = "lisst"', 2, "scheduler.kind", "did you mean 'list'"),
]


@pytest.mark.parametrize(("line", "number", "field", "expected"), BROKEN, ids=[b[2] for b in BROKEN])
def test_errors_report_the_scheduler_file_alone_and_in_a_study(folder, line, number, field, expected):
    file = folder / "mine.toml"
    file.write_text(f"version = 1\n{line}\n")
    with pytest.raises(InputError) as caught:
        load_scheduler(file)
    assert expected in str(caught.value)
    assert (caught.value.file, caught.value.line, caught.value.field) == (file, number, field.removeprefix("scheduler."))
    with pytest.raises(InputError) as caught:
        load(by_file(folder, "mine.toml"))
    assert expected in str(caught.value)
    assert (caught.value.file, caught.value.line, caught.value.field) == (file, number, field)


def test_missing_and_unsupported_scheduler_files_are_errors(folder):
    path = by_file(folder, "nowhere.toml")
    with pytest.raises(InputError, match="no such file") as caught:
        load(path)
    assert (caught.value.line, caught.value.field) == (3, "scheduler") and "catalog:NAME" in caught.value.remedy
    path.write_text(path.read_text().replace("nowhere.toml", "catalog:fm-easy"))
    with pytest.raises(InputError, match="did you mean 'fm-easy'") as caught:
        load(path, {"scheduler": "catalog:fm-eazy"})
    assert caught.value.field == "scheduler"
    (folder / "old.toml").write_text("version = 3\n")
    with pytest.raises(InputError, match="version 3") as caught:
        load(path, {"scheduler": "old.toml"})
    assert caught.value.file == folder / "old.toml"


def test_changed_settings_file_changes_the_key(folder):
    """The key depends on the bytes of a file that a setting names, not on the current folder."""
    (folder / "table.csv").write_text("devices,1\n1,10\n")
    model = 'model = { name = "nvme_sharing", tables = { a = "table.csv" } }'
    path = change(folder, "[measure]", f"[performance]\n{model}\n[measure]")
    before = load(path).cells[0].key
    assert load(path).cells[0].key == before
    (folder / "table.csv").write_text("devices,1\n1,11\n")
    assert load(path).cells[0].key != before


WARM = dict.fromkeys(("flow", "firmament", "least_allocated", "batch", "composition")) | {
    "list": Component(name="pooled"),
    "list_flow": Component(name="pooled"),
}


def test_warm_up_uses_the_placement_of_its_scheduler():
    """Schedulers with order, backfill and placement warm up under FCFS without backfilling; others under their own policy."""
    made = {kind: scheduler_of(SchedulerSection(kind=kind, placement=part), 9) for kind, part in WARM.items()}
    assert made["list"].first == ListScheduler(FCFS(), WITHOUT_BACKFILL, Pooled())
    assert made["list_flow"].first == ListScheduler(FCFS(), WITHOUT_BACKFILL, Pooled())
    for kind in ("flow", "firmament", "least_allocated", "batch", "composition"):
        assert made[kind] == scheduler_of(SchedulerSection(kind=kind))


OWN_ADMISSION = """\
from dataclasses import dataclass

from poolwise.interfaces import AdmissionPolicy


@dataclass(frozen=True)
class Few(AdmissionPolicy):
    most: int = 1

    def admits(self, cycle):
        return cycle.queue.table.nodes[cycle.queue.jobs] <= self.most
"""


def test_user_admission_policy_is_configured_by_name(tmp_path):
    (tmp_path / "few.py").write_text(OWN_ADMISSION)
    (tmp_path / "mine.toml").write_text('version = 1\nadmission = { name = "few.py:Few", most = 2 }\n')
    section = load_scheduler(tmp_path / "mine.toml")
    scheduler = scheduler_of(section)
    assert scheduler.admission.most == 2 and scheduler.rule() is None
    nodes = np.array([1, 3, 2])
    load = Workload.of(np.zeros(3, dtype=np.int64), np.full(3, SECOND), requests={"nodes": nodes})
    schedule = simulate(load, Machine.flat(4), scheduler).schedule
    assert sorted(load.id[schedule.job].tolist()) == [1, 3]
    named, plain = (scheduler_content(s) for s in (section, SchedulerSection()))
    assert named["admission"]["settings"] == {"most": 2} and "admission" not in plain
    assert scheduler_of(SchedulerSection(admission=Component(name="machine_limits"))) == ListScheduler()


def test_invalid_admission_is_an_error(tmp_path):
    (tmp_path / "none.py").write_text("class Nothing:\n    pass\n")
    for line, words in (
        ('admission = "none.py:Nothing"', "Nothing has no admits"),
        ('admission = "machine_limit"', "machine_limit"),
        ('kind = "flow"\nadmission = "machine_limits"', "scheduler 'flow' does not support 'admission'"),
    ):
        (tmp_path / "mine.toml").write_text(f"version = 1\n{line}\n")
        with pytest.raises(InputError, match=words) as raised:
            load_scheduler(tmp_path / "mine.toml")
        assert raised.value.line is not None


@pytest.mark.parametrize(
    ("line", "content", "expected"),
    [
        ("order = { name = 'multifactor', conf = 'no.conf' }", "", "mine.toml, line 2, field 'order': no.conf: cannot be read"),
        ("backfill = { name = 'slurm', conf = 'no.conf' }", "", "mine.toml, line 2, field 'backfill': no.conf: cannot be read"),
        ("order = { name = 'multifactor', settings = { PriorityWeigthAge = 5 } }", "", "did you mean 'PriorityWeightAge'"),
        ("order = { name = 'multifactor', conf = 'slurm.conf' }", "PriorityType=priority/basic", "has no priority factors"),
        (
            "order = { name = 'multifactor', conf = 'slurm.conf' }",
            "PriorityType=priority/multifactor\nPriorityWeightAge=abc",
            "slurm.conf, line 2, field 'PriorityWeightAge': 'abc' is not a number",
        ),
        (
            "backfill = { name = 'slurm', conf = 'slurm.conf' }",
            "SchedulerParameters=bf_interval=-5",
            "slurm.conf, line 1, field 'SchedulerParameters': bf_interval=-5 is not a whole number above 0",
        ),
    ],
)
def test_invalid_slurm_conf_is_an_error_at_load(tmp_path, line, content, expected):
    (tmp_path / "mine.toml").write_text(f"version = 1\n{line}\n")
    (tmp_path / "slurm.conf").write_text(f"{content}\n")
    with pytest.raises(InputError) as caught:
        load_scheduler(tmp_path / "mine.toml")
    assert expected in str(caught.value)


def test_file_in_the_current_folder_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "mine.toml").write_text("version = 1\norder = { name = 'multifactor', conf = 'slurm.conf' }\n")
    (tmp_path / "slurm.conf").write_text("PriorityType=priority/multifactor\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"mine\.toml, line 2, field .order.: slurm\.conf is in the current folder,"):
        load_scheduler(Path("inner/mine.toml"))
    (tmp_path / "inner" / "slurm.conf").write_text("PriorityType=priority/multifactor\n")
    assert load_scheduler(Path("inner/mine.toml")).order.settings["conf"] == str(tmp_path / "inner" / "slurm.conf")


def test_preemption_is_configured_by_name(tmp_path):
    settings = 'name = "tiers", mode = "cancel", exempt_s = 60.0, partitions = { low = "requeue" }'
    (tmp_path / "mine.toml").write_text(f"version = 1\npreemption = {{ {settings} }}\n")
    section = load_scheduler(tmp_path / "mine.toml")
    scheduler = scheduler_of(section)
    assert scheduler.preemption == TierPreemption("cancel", 60.0, partitions={"low": "requeue"}) and scheduler.rule() is None
    named, plain = (scheduler_content(s) for s in (section, SchedulerSection()))
    assert named["preemption"]["name"] == "tiers" and "preemption" not in plain
    qos = 'name = "qos", preempts = { high = ["low"] }, exempt = { low = 30.0 }'
    (tmp_path / "mine.toml").write_text(f"version = 1\npreemption = {{ {qos} }}\n")
    assert scheduler_of(load_scheduler(tmp_path / "mine.toml")).preemption.preempts == {"high": ["low"]}


def test_invalid_preemption_is_an_error(tmp_path):
    (tmp_path / "none.py").write_text("class Nothing:\n    pass\n")
    for line, words in (
        ('preemption = "none.py:Nothing"', "Nothing has no stops"),
        ('preemption = "tier"', "tier"),
        ('preemption = { name = "tiers", mode = "suspend" }', "suspend"),
        ('kind = "flow"\npreemption = "tiers"', "scheduler 'flow' does not support 'preemption'"),
    ):
        (tmp_path / "mine.toml").write_text(f"version = 1\n{line}\n")
        with pytest.raises(InputError, match=words) as raised:
            load_scheduler(tmp_path / "mine.toml")
        assert raised.value.line is not None
