from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.files.document import Document
from poolwise.files.machine import read_machine
from poolwise.model import Kind, Machine, Partition, QualityOfService
from poolwise.quantities import DAY, HOUR
from poolwise.studies import load_machine

MACHINE = """\
version = 1

[[node]]
name = "nodes"
cores = 12
memory = "16 GiB"

[[rack]]
count = 4
nodes = { nodes = 48 }

[[pool]]
name = "pool"
memory = "512 GiB"
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "machine.toml"
    file.write_text(text)
    return file


def same(one: Machine, other: Machine) -> None:
    assert one.resources == other.resources
    for name in ("kind", "rack", "position", "home", "capacity"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.per_node.keys() == other.per_node.keys()
    for name, column in one.per_node.items():
        np.testing.assert_array_equal(column, other.per_node[name])


def test_racks_of_whole_nodes_match_the_model(tmp_path):
    machine = load_machine(write(tmp_path, MACHINE))
    expected = Machine.of_racks(4, 48, local=16384, pool=512 * 1024, cores=12)
    same(machine, expected)
    assert machine.owners == expected.owners
    assert machine.name == "machine"


def test_catalog_demo_machine_matches_the_demo():
    machine = load_machine(catalog.find("machines", "cerit-racks"))
    same(machine, Machine.of_racks(4, 48, local=16384, pool=512 * 1024, cores=12))


@pytest.mark.parametrize(("name", "racks", "nodes", "pool_tib"), [("perlmutter-like", 6, 256, 16), ("juwels-like", 20, 48, 6)])
def test_catalog_machines_match_the_paper(name, racks, nodes, pool_tib):
    machine = load_machine(catalog.find("machines", name))
    cores = int(machine.per_node["cores"][0])
    same(machine, Machine.of_racks(racks, nodes, local=64 * 1024, pool=pool_tib * 2**20, cores=cores))


@given(st.integers(1, 5), st.integers(1, 9), st.integers(0, 300), st.integers(0, 900), st.integers(1, 64))
def test_racks_round_trip_through_a_file(tmp_path_factory, racks, nodes, local, pool, cores):
    text = MACHINE.replace("cores = 12", f"cores = {cores}").replace('"16 GiB"', f'"{local} MiB"')
    text = text.replace("count = 4", f"count = {racks}").replace("nodes = 48", f"nodes = {nodes}")
    text = text.replace('"512 GiB"', f'"{pool} MiB"')
    machine = load_machine(write(tmp_path_factory.mktemp("machine"), text))
    same(machine, Machine.of_racks(racks, nodes, local=local, pool=pool, cores=cores))


def test_shared_nodes_devices_pools_and_links(tmp_path):
    machine = load_machine(
        write(
            tmp_path,
            """\
version = 1
name = "mixed"
[[node]]
name = "gpu"
allocation = "shared"
cores = 8
memory = "64 GiB"
attributes = { watts = 350 }
[[rack]]
count = 2
nodes = { gpu = 2 }
[[pool]]
name = "nvme"
per = "machine"
storage = "1 TiB"
bandwidth = "2 GB/s"
[[device]]
name = "a100"
count = 3
at = "g*"
memory = "40 GiB"
[[device]]
name = "spare"
type = "a100"
at = "rack"
[[link]]
name = "port"
from = "rack?.gpu?"
to = "rack"
bandwidth = "10 Gb/s"
latency = "200 ns"
[[link]]
name = "uplink"
from = "rack?"
to = "machine"
bandwidth = "40 Gb/s"
latency = "1 us"
""",
        )
    )
    assert machine.owners[:4] == ("rack0.gpu0", "rack0.gpu1", "rack1.gpu0", "rack1.gpu1")
    node, pool = machine.owner("rack1.gpu1"), machine.owner("nvme")
    amount = dict(zip(machine.resources, machine.capacity[node].tolist(), strict=True))
    assert (amount["cores"], amount["memory"], amount["devices"]) == (8, 65536, 0)
    assert machine.capacity[pool, machine.resource("storage")] == 2**20
    assert machine.capacity[pool, machine.resource("bandwidth")] == 2000
    assert machine.attributes["watts"][node] == 350 and np.isnan(machine.attributes["watts"][pool])
    device = machine.owner("rack1.gpu1.a1002")
    assert machine.home[device] == node and machine.position[device].tolist() == [1, 1]
    assert machine.home[machine.owner("rack0.spare0")] == -1
    assert len(machine.of_kind(Kind.DEVICE)) == 4 * 3 + 2
    assert len(machine.of_kind(Kind.LINK)) == 4 + 2
    path = machine.fabric.path(device, machine.owner("rack0.gpu0"))
    names = [machine.owners[o] for o in machine.fabric.link_owners(path)]
    assert names == ["port:rack1.gpu1", "uplink:rack1", "uplink:rack0", "port:rack0.gpu0"]
    assert machine.fabric.path_latency(path) == 2 * 200 + 2 * 1000
    assert machine.capacity[machine.owner("uplink:rack0"), machine.resource("bandwidth")] == 5000


BROKEN = [  # (old text, new text, line, field, expected words of message or remedy)
    ("cores = 12", "cores = = 12", 5, None, "not valid TOML"),
    ("version = 1", "", None, "version", "write version = 1"),
    ("version = 1", "version = 2", 1, "version", "unsupported version 2"),
    ('"16 GiB"', '"16 GB/s"', 6, "node.nodes.memory", "unit 'GB/s'"),
    ('"16 GiB"', "16", 6, "node.nodes.memory", "with a number and a unit"),
    ('"512 GiB"', '"-1 GiB"', 14, "pool.pool.memory", "not negative"),
    ('"512 GiB"', '"2000000 TiB"', 14, "pool.pool.memory", "exceeds the maximum of 1,099,511,627,776 MiB"),
    ("count = 4", "count = 1000000000", 9, "rack.0.count", "less than or equal to 1048576"),
    ("nodes = { nodes = 48 }", "nodes = 48", 10, "rack.0.nodes", "expected a table"),
    ('"512 GiB"', '"plenty"', 14, "pool.pool.memory", "not a quantity"),
    ('memory = "512 GiB"', 'memroy = "512 GiB"', 14, "pool.pool.memroy", "did you mean 'memory'"),
    ("[[pool]]", "[[pools]]", 12, "pools", "did you mean 'pool'"),
    ("count = 4", "count = 0", 9, "rack.0.count", "greater than or equal to 1"),
    ("count = 4", "count = 1.5", 9, "rack.0.count", "integer"),
    ("nodes = 48", "thick = 48", 10, "rack.0.nodes", "unknown node type 'thick'"),
    ("cores = 12", 'allocation = "hole"', 5, "node.nodes.allocation", "did you mean 'whole'"),
    ('name = "pool"', 'name = "nodes"', 13, "pool.nodes.name", "is already used by a [[node]]"),
    ('name = "pool"', 'name = "a.b"', 13, None, "is not a valid name"),
    ('name = "nodes"\n', "", 3, "node.0.name", "missing"),
    ("[[rack]]\ncount = 4\nnodes = { nodes = 48 }\n", "", None, "rack", "missing"),
    ('"512 GiB"', '"512 GiB"\nper = "row"', 15, "pool.pool.per", "valid values: rack, machine"),
    ('"512 GiB"', '"512 GiB"\n[[device]]\nname = "gpu"\nat = "fat"', 17, "device.gpu.at", "unknown location 'fat'"),
    ('"512 GiB"', '"512 GiB"\n[[device]]\nname = "gpu"\nat = "nodes"', 17, "device.gpu.at", 'allocation = "shared"'),
    (
        '"512 GiB"',
        '"512 GiB"\n[[link]]\nname = "up"\nfrom = "rack0"\nto = "spine"\nbandwidth = "1 GB/s"',
        18,
        "link.up.to",
        "unknown link endpoint 'spine'",
    ),
    (
        '"512 GiB"',
        '"512 GiB"\n[[link]]\nname = "up"\nfrom = "rock*"\nto = "machine"\nbandwidth = "1 GB/s"',
        17,
        "link.up.from",
        "unknown owner or rack 'rock*'",
    ),
]


@pytest.mark.parametrize(("old", "new", "line", "field", "expected"), BROKEN, ids=[f"{b[2]}-{b[3]}" for b in BROKEN])
def test_errors_report_file_line_field_and_remedy(tmp_path, old, new, line, field, expected):
    assert MACHINE.count(old) >= 1
    file = write(tmp_path, MACHINE.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_machine(file)
    error = caught.value
    assert error.file == file and error.remedy
    assert error.line == line, str(error)
    if field is not None:
        assert error.field == field
    assert expected in str(error)


def test_byte_order_mark_and_line_endings_are_ignored(tmp_path):
    file = write(tmp_path, MACHINE)
    plain = load_machine(file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert load_machine(file).summary() == plain.summary()


def test_non_text_and_missing_files_are_errors(tmp_path):
    file = tmp_path / "machine.toml"
    file.write_bytes(b'version = 1\nname = "\xff"\n')
    with pytest.raises(InputError, match="UTF-8") as caught:
        load_machine(file)
    assert caught.value.line == 2
    with pytest.raises(InputError, match="No such file"):
        load_machine(tmp_path / "nowhere.toml")


LINKED = """version = 1
[[node]]
name = "server"
allocation = "shared"
cores = 8
[[rack]]
nodes = { server = 2 }
[[device]]
name = "gpu"
count = 2
at = "server"
[[link]]
name = "access"
from = "FROM"
to = "rack"
bandwidth = "10 Gb/s"
"""


@pytest.mark.parametrize(
    ("pattern", "count"), [("rack*.server*", 2), ("rack*.server*.gpu*", 4), ("rack0.server1", 1), ("*.*", 2), ("*.*.gpu0", 2)]
)
def test_node_pattern_does_not_match_its_devices(tmp_path, pattern, count):
    """A local GPU stays at its node's vertex unless it has its own link."""
    path = tmp_path / "machine.toml"
    path.write_text(LINKED.replace("FROM", pattern))
    machine = load_machine(path)
    assert len(machine.of_kind(Kind.LINK)) == count
    for gpu in machine.of_kind(Kind.DEVICE).tolist():
        own = f"access:{machine.owners[gpu]}" in machine.owners
        assert (machine.fabric.vertex[gpu] == machine.fabric.vertex[machine.home[gpu]]) != own


PARTITIONS = """\
version = 1

[[node]]
name = "thin"
allocation = "shared"
cores = 8
features = ["avx"]

[[node]]
name = "fat"
allocation = "shared"
cores = 8
features = ["avx", "big"]

[[rack]]
count = 2
nodes = { thin = 2, fat = 1 }

[[partition]]
name = "1"
nodes = ["rack0"]
default = true
max_time = "1 d"
max_nodes = 2

[[partition]]
name = "large"
nodes = ["fat", "rack1.thin1"]
tier = 5

[[qos]]
name = "normal"
max_time = "2 d"
per_user = { jobs = 3, cores = 16 }
total = { nodes = 4 }

[[window]]
name = "upkeep"
start = "10 h"
end = "12 h"
nodes = ["rack1"]
users = ["root"]
"""


def test_partitions_features_qos_and_windows(tmp_path):
    machine = load_machine(write(tmp_path, PARTITIONS))
    assert machine.owners == ("rack0.thin0", "rack0.thin1", "rack0.fat0", "rack1.thin0", "rack1.thin1", "rack1.fat0")
    sets = {name: np.flatnonzero(members).tolist() for name, members in machine.node_sets.items()}
    assert sets == {"avx": [0, 1, 2, 3, 4, 5], "big": [2, 5], "1": [0, 1, 2], "large": [2, 4, 5]}
    assert machine.partitions == (Partition("1", True, DAY, 2, 1), Partition("large", tier=5))
    assert machine.qos == (QualityOfService("normal", False, 2 * DAY, (("cores", 16), ("jobs", 3)), (("nodes", 4),)),)
    (window,) = machine.windows
    assert (window.name, window.start, window.end, window.users) == ("upkeep", 10 * HOUR, 12 * HOUR, {"root"})
    assert np.flatnonzero(window.owners).tolist() == [3, 4, 5]


def test_licenses_are_read_and_written_back(tmp_path):
    text = PARTITIONS + '[licenses]\nmatlab = 10\n"ansys@host" = 0\nmemory = 3\n'
    licenses = {"matlab": 10, "ansys@host": 0, "memory": 3}
    described = read_machine(Document.read(write(tmp_path, text)))
    assert described.machine.licenses == described.content["licenses"] == described.tables["licenses"] == licenses
    without = read_machine(Document.read(write(tmp_path, PARTITIONS)))
    assert without.machine.licenses == {} and "licenses" not in {**without.content, **without.tables}


@pytest.mark.parametrize(
    ("lines", "line", "field", "expected"),
    [
        ("[license]\nmatlab = 10", 44, "license", "unknown key 'license'"),
        ("[licenses]\nmatlab = -1", 45, "licenses.matlab", "greater than or equal to 0"),
        ('[licenses]\n"mat lab" = 1', 45, "licenses.mat lab", "not a valid name"),
    ],
)
def test_invalid_licenses_are_errors_with_line(tmp_path, lines, line, field, expected):
    with pytest.raises(InputError, match=expected) as caught:
        load_machine(write(tmp_path, f"{PARTITIONS}\n{lines}\n"))
    assert (caught.value.line, caught.value.field) == (line, field)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "expected"),
    [
        ('nodes = ["rack0"]', 'nodes = ["rak0"]', 21, "partition.1.nodes", "unknown nodes 'rak0'"),
        ('name = "large"', 'name = "big"', 27, "partition.big.name", "is also a feature with different nodes"),
        ('name = "large"', 'name = "1"', 27, "partition.1.name", "duplicate partition '1'"),
        ("tier = 5", "default = true", 29, "partition.large.default", "'1' is already the default"),
        ("cores = 16", "coers = 16", 34, "qos.normal.per_user.coers", "unknown amount 'coers'"),
        ('end = "12 h"', 'end = "9 h"', 37, "window.upkeep", "end must be after start"),
    ],
)
def test_invalid_partitions_are_errors_with_line(tmp_path, old, new, line, field, expected):
    with pytest.raises(InputError, match=expected) as caught:
        load_machine(write(tmp_path, PARTITIONS.replace(old, new)))
    assert (caught.value.line, str(caught.value.field).split(".0")[0]) == (line, field)
    assert caught.value.remedy
