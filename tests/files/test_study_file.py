import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InputError, flat
from poolwise.files.document import Document, Origin
from poolwise.files.factory import models_of, scheduler_of
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.order.priorities import F1, FM
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from poolwise.studies import load
from poolwise.studies.cells import workload_of
from poolwise.studies.study import find, parse_setting

ORDER = """\
from dataclasses import dataclass
from typing import ClassVar
from poolwise.interfaces import QueuePolicy

@dataclass(frozen=True)
class Largest(QueuePolicy):
    kind: ClassVar[str] = "static"
    factor: float = 1.0

    def priority(self, queue, snapshot):
        return self.factor * queue.table.nodes[queue.jobs]
"""


def change(folder: Path, old: str, new: str, file: str = "study.toml") -> Path:
    text = (folder / file).read_text()
    assert text.count(old) >= 1
    (folder / file).write_text(text.replace(old, new, 1))
    return folder / "study.toml"


def test_cells_cover_every_combination_and_seed(folder):
    study = load(change(folder, "[vary]", "[seeds]\ncount = 3\n[vary]"))
    assert [(*c.parameters.values(), c.seed) for c in study.cells] == [
        (order, pool, seed) for order in ("fcfs", "fm") for pool in ("32 GiB", "64 GiB") for seed in (0, 1, 2)
    ]
    assert len({cell.key for cell in study.cells}) == 12
    assert len(study.baselines) == 2 * 3, "one per memory configuration and seed, shared by the orders"
    assert study.title == "a small study" and study.name == "study"


def test_cell_is_built_from_the_file(folder):
    cell = load(folder / "study.toml").cells[-1]
    scheduler = scheduler_of(cell.scheduler, cell.warm_up)
    assert isinstance(scheduler, WarmUp) and scheduler.jobs == 5
    assert isinstance(scheduler.then, ListScheduler) and scheduler.then.order == FM()
    assert cell.machine.capacity[cell.machine.owner("rack1.memory")].max() == 64 * 1024
    assert len(workload_of(cell)) == 60
    model, estimate = models_of(cell.performance, 7)
    assert model == RemoteMemory(seed=7) and estimate is None


def test_settings_configure_their_component(folder):
    path = change(folder, 'order = "fm"', 'order = { name = "f1", as_printed = true }\nscope = "system"')
    change(folder, '"scheduler.order" = ["fcfs", "fm"]\n', "")
    change(
        folder, "[measure]", '[performance]\nmodel = { name = "remote_memory", curve = "linear" }\nestimate = "mean"\n[measure]'
    )
    cell = load(path).cells[0]
    scheduler = scheduler_of(cell.scheduler)
    assert isinstance(scheduler, ListScheduler) and scheduler.order == F1(as_printed=True)
    assert scheduler.placement.scope == "system"
    model, estimate = models_of(cell.performance, 3)
    assert model == RemoteMemory(seed=3, curve="linear")
    assert estimate == RemoteMemory(seed=3, curve="linear", expect="mean")


def test_set_uses_the_same_paths_and_replaces_varied_values(folder):
    path = folder / "study.toml"
    study = load(path, {"scheduler.order": "sjf", "workload.jobs": 20, "machine.pool.memory.memory": "48 GiB"})
    assert len(study.cells) == 1 and study.cells[0].parameters == {}
    assert study.cells[0].scheduler.order.name == "sjf"
    assert study.cells[0].machine.capacity.max() == 48 * 1024
    assert load(path, {"vary.scheduler.order": ["f1"]}).vary["scheduler.order"] == ("f1",)
    with pytest.raises(InputError, match=r"cannot be set because .* is varied"):
        load(path, {"scheduler.order.as_printed": True})
    by_place = load(path, {"machine.pool.0.memory": "1 GiB", "vary.machine.pool.memory.memory": ["2 GiB"]})
    assert by_place.cells[0].machine.capacity[-1].max() == 2048


def test_set_reaches_settings_of_a_component_given_by_name(folder):
    change(folder, 'order = "fm"', 'order = "f1"')
    path = change(folder, '"scheduler.order" = ["fcfs", "fm"]\n', "")
    cell = load(path, {"scheduler.order.as_printed": True}).cells[0]
    assert scheduler_of(cell.scheduler).order == F1(as_printed=True)


def test_machine_can_be_inline_or_varied_by_file(folder):
    path = folder / "study.toml"
    other = (folder / "machine.toml").read_text().replace("thin = 4", "thin = 6")
    (folder / "other.toml").write_text(other)
    varied = load(path, {"vary.machine": ["machine.toml", "other.toml"]})
    nodes = [int(cell.machine.capacity[0, 0]) for cell in varied.cells]
    assert sorted(nodes) == [4, 4, 4, 4, 6, 6, 6, 6]
    pools = {int(cell.machine.capacity.max()) for cell in varied.cells}
    assert pools == {32 * 1024, 64 * 1024}, "varied values inside the machine are set after the machine"

    by_file = load(path)
    machine = (folder / "machine.toml").read_text()
    inline = machine.replace("[[", "[[machine.").replace('version = 1\ntitle = "two racks"\nname = "small"\n', "")
    change(folder, 'machine = "machine.toml"\n', "")
    with path.open("a") as file:
        file.write(f"[machine]\nversion = 1\nname = 'small'\n{inline}")
    assert [cell.key for cell in load(path).cells] == [cell.key for cell in by_file.cells]


def test_policy_file_is_relative_to_the_study_and_its_bytes_count(folder, monkeypatch):
    (folder / "mine.py").write_text(ORDER)
    path = change(folder, '"fm"]', '{ name = "mine.py:Largest", factor = 2.0 }]')
    monkeypatch.chdir("/")
    before = load(path)
    assert before.cells[2].parameters["scheduler.order"] == "mine.py:Largest(factor=2.0)"
    assert scheduler_of(before.cells[2].scheduler).order.factor == 2.0
    keys = [cell.key for cell in before.cells]
    (folder / "mine.py").write_text(ORDER + "# changed\n")
    after = [cell.key for cell in load(path).cells]
    assert after[:2] == keys[:2] and after[2] != keys[2] and after[3] != keys[3]


def test_key_depends_on_exactly_the_inputs_of_a_result(folder):
    path = folder / "study.toml"
    fixed = {"scheduler.order": "fm", "machine.pool.memory.memory": "64 GiB"}

    def key(**settings):
        return load(path, fixed | {k.replace("__", "."): v for k, v in settings.items()}).cells[0].key

    first = key()
    assert first == key() == key(title="other") == key(machine__title="x") == key(measure__tau="1 s")
    assert first == key(**{"machine.pool.memory.memory": "65536 MiB"}), "units do not count"
    assert first == key(scheduler__backfill="easy"), "explicit defaults do not count"
    others = [
        key(workload__first=1, workload__jobs=10),
        key(workload__jobs=10),
        key(scheduler__backfill="none"),
        key(scheduler__scope="system"),
        key(performance__estimate="none"),
        key(measure__warm_up=6),
        key(seeds__values=[1]),
        key(**{"machine.rack.0.count": 3}),
    ]
    change(folder, "1,0,", "1,1,", "jobs.csv")
    others.append(key())
    assert len({first, *others}) == len(others) + 1


BROKEN = [  # (old text, new text, line, field, expected words)
    ("version = 1", "version = 3", 1, "version", "unsupported version 3"),
    ("machine.toml", "nowhere.toml", 3, "machine", "no such file"),
    ("machine.toml", "catalog:cerit-rack", 3, "machine", "did you mean 'cerit-racks'"),
    ('machine = "machine.toml"', "machine = 5", 3, "machine", "valid string"),
    ('machine = "machine.toml"', "", None, "machine", "missing"),
    ("jobs.csv", "nowhere.csv", 6, "workload.trace", "no such file"),
    ("jobs.csv", "catalog:cerit-2014", 6, "workload.trace", "did you mean 'cerit-2013.swf.gz'"),
    ('"jobs.csv"', '"jobs.csv"\nformat = "swff"', 7, "workload.format", "did you mean 'swf'"),
    ('"jobs.csv"', '"jobs.csv"\nformat = "swf"\noptions = { extra = 3 }', 8, "workload.options.extra", "unknown setting"),
    ('"jobs.csv"', '"jobs.csv"\njobs = 0', 7, "workload.jobs", "greater than or equal to 1"),
    ('order = "fm"', 'order = "fmm"', 9, "scheduler.order", "did you mean 'fm'"),
    ('order = "fm"', 'ordr = "fm"', 9, "scheduler.ordr", "did you mean 'order'"),
    ('order = "fm"', 'order = { name = "f1", printed = true }', 9, "scheduler.order.printed", "did you mean 'as_printed'"),
    ('order = "fm"', 'order = { name = "f1", as_printed = "yes" }', 9, "scheduler.order.as_printed", "boolean"),
    ('order = "fm"', 'order = "mine.py:Name"', 9, "scheduler.order", "no such file"),
    ('order = "fm"', 'kind = "lisst"', 9, "scheduler.kind", "did you mean 'list'"),
    ('order = "fm"', 'scope = "rak"', 9, "scheduler.scope", "did you mean 'rack'"),
    ('order = "fm"', 'placement = { name = "racks", scope = "rak" }', 9, "scheduler.placement.scope", "'rack'"),
    ('order = "fm"', 'settings = { name = "fm" }', 9, "scheduler.settings.name", "'list' has no setting 'name'"),
    ('"jobs.csv"', '"jobs.csv"\nformat = "swf"\noptions = { name = "x" }', 8, "workload.options.name", "has no setting 'name'"),
    ("[measure]", "[seeds]\ncount = 999999999999\n[measure]", 12, "seeds.count", "less than or equal to 100000"),
    ("[measure]", '[performance]\nmodel = "remote"\n[measure]', 12, "performance.model", "did you mean 'remote_memory'"),
    ("[measure]", '[performance]\nmodel = "ideal"\nestimate = "mean"\n[measure]', 13, "performance.estimate", "no mean"),
    ("warm_up = 5", "warm_up = -5", 12, "measure.warm_up", "greater than or equal to 0"),
    ("warm_up = 5", 'tau = "10"', 12, "measure.tau", "unit is missing"),
    ('["fcfs", "fm"]', '["fcfs", "fmm"]', 15, "scheduler.order", "did you mean 'fm'"),
    ('["fcfs", "fm"]', '["fcfs", "fcfs"]', 14, "vary", "duplicate cells"),
    ('["fcfs", "fm"]', '["fcfs", { name = 3 }]', 15, "scheduler.order.name", "valid string"),
    ('["fcfs", "fm"]', '"fcfs"', 15, "vary.scheduler.order", "non-empty list of values"),
    ('"32 GiB", "64 GiB"', '"32 GiB", "64 GB/s"', 16, "machine.pool.memory.memory", "unit 'GB/s'"),
    ("machine.pool.memory.memory", "machine.pool.memroy.memory", 16, "machine.pool.memroy.memory", "machine.pool.memory"),
    ("scheduler.order", "scheduler.ordr", 15, "scheduler.ordr", "did you mean 'order'"),
    ('"scheduler.order" = ["fcfs", "fm"]', '"measure.tau" = ["1 s"]', 15, "vary.measure.tau", "cannot be varied"),
    ("[vary]", "[seeds]\nvalues = [0]\ncount = 1\n[vary]", 14, "seeds", "not both"),
]


@pytest.mark.parametrize(("old", "new", "line", "field", "expected"), BROKEN, ids=[f"{b[2]}-{b[3]}" for b in BROKEN])
def test_errors_at_load_report_file_line_field_and_remedy(folder, old, new, line, field, expected):
    path = change(folder, old, new)
    with pytest.raises(InputError) as caught:
        load(path)
    error = caught.value
    assert expected in str(error), str(error)
    assert (error.file, error.line, error.field) == (path, line, field), str(error)
    assert error.remedy


def test_folder_without_a_study_is_an_error(folder, monkeypatch):
    with pytest.raises(InputError, match=r"no study\.toml in the folder") as caught:
        find(folder.parent)
    assert caught.value.file == folder.parent
    monkeypatch.chdir(folder)
    (folder / "cerit-pools").mkdir()
    assert find("cerit-pools").is_file(), "a folder of that name does not shadow a catalog study"


def test_vary_must_be_a_table(folder):
    text = (folder / "study.toml").read_text().partition("[vary]")[0]
    (folder / "study.toml").write_text(text.replace("version = 1", 'version = 1\nvary = "x"'))
    with pytest.raises(InputError, match="expected a table") as caught:
        load(folder / "study.toml")
    assert (caught.value.line, caught.value.field) == (2, "vary")


def test_error_in_the_machine_file_reports_that_file(folder):
    change(folder, '"16 GiB"', '"16 GiBB"', "machine.toml")
    with pytest.raises(InputError, match="unit 'GiBB'") as caught:
        load(folder / "study.toml")
    assert (caught.value.file, caught.value.line) == (folder / "machine.toml", 8)
    assert caught.value.field == "machine.node.thin.memory"


def test_error_in_a_set_value_reports_set(folder):
    with pytest.raises(InputError, match=r"--set: .*negative") as caught:
        load(folder / "study.toml", {"machine.pool.memory.memory": "-1 GiB"})
    assert caught.value.line is None and caught.value.field == "machine.pool.memory.memory"
    with pytest.raises(InputError, match="no such path") as caught:
        load(folder / "study.toml", {"machine.pool.memori.memory": "1 GiB"})
    assert "machine.pool.memory.memory" in caught.value.remedy


@pytest.mark.parametrize(
    ("path", "near"), [("machine.pool.memori.memory", "machine.pool.memory.memory"), ("machin.pool.memory.memory", "machine")]
)
def test_unknown_varied_path_suggests_a_path_that_can_be_varied(folder, path, near):
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(re.sub(r"\[vary\]\n", f'[vary]\n"{path}" = [1, 2]\n', text))
    with pytest.raises(InputError, match=r"no such path|unknown section") as caught:
        load(folder / "study.toml")
    (error,) = flat([caught.value])
    assert error.line is not None
    assert error.remedy.startswith(f"did you mean '{near}'?")
    assert not re.search(r"\b(vary|today|measure|seeds|title|version)\b", error.remedy)


@pytest.mark.parametrize("varied", [False, True])
def test_default_placement_on_shared_nodes_is_reported_with_its_remedy(folder, varied):
    change(folder, "cores = ", 'allocation = "shared"\ncores = ', "machine.toml")
    text = (folder / "study.toml").read_text()
    assert "placement" not in text
    if varied:
        text = text.replace("[vary]\n", '[vary]\n"scheduler.placement" = ["first_fit", "racks"]\n')
        (folder / "study.toml").write_text(text)
    with pytest.raises(InputError, match="requires whole nodes, but all nodes of machine") as caught:
        load(folder / "study.toml")
    error = flat([caught.value])[0]
    assert error.remedy == 'write placement = "first_fit"'
    assert error.file == folder / "study.toml" and error.line is not None and error.field == "scheduler.placement"


def test_keys_with_dots_are_matched_literally(tmp_path):
    """A search's `[space]` has such keys; they take precedence over nested tables."""
    file = tmp_path / "search.toml"
    file.write_text('[space]\n"scheduler.order.rise" = { least = 1.0, most = 2.0 }\n"a.b" = 1\na = { b = 2, c = 3 }\n')
    document = Document.read(file)
    document = document.with_value("space.scheduler.order.rise.least", 1.5, Origin("--set"))
    document = document.with_value("space.a.b", 4, Origin("--set"))
    document = document.with_value("space.a.c", 5, Origin("--set"))
    assert document.tables["space"] == {"scheduler.order.rise": {"least": 1.5, "most": 2.0}, "a.b": 4, "a": {"b": 2, "c": 5}}
    assert document.get("space.scheduler.order.rise.most") == 2.0
    error = document.error(("space", "scheduler.order.rise", "least"), "is too small")
    assert error.line is None and "--set: is too small" in str(error)
    assert document.error(("space", "scheduler.order.rise", "most"), "is too small").line == 2
    with pytest.raises(InputError, match="no such path"):
        document = document.with_value("space.scheduler.order.fall.least", 1.0, Origin("--set"))


def test_unknown_catalog_study_lists_known_ones():
    with pytest.raises(InputError, match="unknown shipped study") as caught:
        load("cerit-pool")
    assert "cerit-pools" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b=3", 3),
        ("a.b = 1.5", 1.5),
        ("a.b=true", True),
        ("a.b=fm", "fm"),
        ("a.b='fm'", "fm"),
        ("a.b=512 GiB", "512 GiB"),
        ('a.b=["x", "y"]', ["x", "y"]),
        ("a.b={ name = 'f1' }", {"name": "f1"}),
        ("a.b=x=y", "x=y"),
        ("a.b=", ""),
    ],
)
def test_settings_are_toml_values_or_bare_strings(text, value):
    assert parse_setting(text) == ("a.b", value)


@pytest.mark.parametrize("text", ["a.b", "=3", "a.b=[1", 'a.b="x', "a.b={"])
def test_invalid_settings_are_errors(text):
    with pytest.raises(InputError):
        parse_setting(text)


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_string_is_a_setting_or_an_input_error(key, value):
    with suppress(InputError):
        setting, _ = parse_setting(f"{key}={value}")
        assert setting
