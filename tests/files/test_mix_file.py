import pytest

from poolwise import catalog
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.machine import load_machine
from poolwise.files.mix import load_mix
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.traces.generators.nvme_mix import published_kinds

MIX = """version = 1
jobs = 40
[[kind]]
name = "stream"
base_time = "100 s"
cores = 4
bandwidth = "1 GB/s"
share = 2.0
table = "stream.csv"
[[kind]]
name = "scratch"
base_time = "50 s"
cores = 2
storage = "200 GiB"
"""
MACHINE = """version = 1
[[node]]
name = "n"
allocation = "shared"
cores = 16
[[rack]]
count = 2
nodes = { n = 2 }
[[device]]
name = "fast"
at = "rack"
count = 2
bandwidth = "3 GB/s"
storage = "400 GiB"
[[device]]
name = "large"
at = "rack"
bandwidth = "1 GB/s"
storage = "1 TiB"
"""


def write(folder, mix=MIX, table="devices,1,2,3\n1,90,120,200\n2,60,70,90\n"):
    (folder / "mix.toml").write_text(mix)
    (folder / "stream.csv").write_text(table)
    (folder / "machine.toml").write_text(MACHINE)
    return folder / "mix.toml"


def test_user_mix_and_machine_run(tmp_path):
    """Run a user-defined mix and performance table on a machine with two kinds of devices."""
    file, model = load_mix(write(tmp_path))
    jobs = file.mix(seed=0).generate()
    what = load_machine(tmp_path / "machine.toml")
    schedule = simulate(jobs, what, CompositionScheduler(), model=model).schedule
    assert schedule.done.all()
    assert len(jobs) == 40
    stream = jobs.attributes["kind"] == "stream"
    taken = (schedule.job_end - schedule.job_start) / 1e9
    assert taken[stream].min() >= 60
    assert (taken[~stream] == 50).all()


def test_catalog_mix_matches_the_published_scenario():
    file, model = load_mix(catalog.find("mixes", "nvme-high-bandwidth"))
    kinds = file.mix(0).kinds
    assert [(k.name, k.base_s, k.cores, k.bandwidth, k.storage, k.share) for k in kinds] == [
        (k.name, k.base_s, k.cores, k.bandwidth, k.storage, pytest.approx(k.share)) for k in published_kinds("high_bandwidth")
    ]
    assert list(model.tables) == ["bandwidth_bound"]


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        ('"100 s"', '"100"', 5, "kind.stream.base_time"),
        ("cores = 4", "cores = 0", 6, "kind.stream.cores"),
        ("share = 2.0", "share = -1", 8, "kind.stream.share"),
        ('table = "stream.csv"', 'table = "streem.csv"', 9, "kind.stream.table"),
        ('table = "stream.csv"', 'partners = ["scratch"]', 9, "kind.stream.partners"),
        ('table = "stream.csv"', 'table = "stream.csv"\npartners = ["scretch"]', 10, "kind.stream.partners"),
        ('name = "scratch"', 'name = "stream"', 11, "kind.stream.name"),
        ("version = 1", "version = 2", 1, "version"),
        ("jobs = 40", "jbos = 40", 2, "jbos"),
    ],
)
def test_invalid_mixes_report_file_line_and_field(tmp_path, old, new, line, field):
    path = write(tmp_path, MIX.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_mix(path)
    assert (caught.value.file, caught.value.line, caught.value.field) == (path, line, field)


def test_invalid_table_of_a_mix_reports_the_cell(tmp_path):
    path = write(tmp_path, table="devices,1,2\n1,90,oops\n")
    with pytest.raises(InputError) as caught:
        load_mix(path)
    assert (caught.value.file, caught.value.line, caught.value.field) == (tmp_path / "stream.csv", 2, "devices=1, sharers=2")
