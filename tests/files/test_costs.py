"""Power tables and price lists, against values by hand, and errors for missing entries."""

import numpy as np
import pytest

from poolwise.errors import InputError
from poolwise.files.cost_items import cost_items, dollars_to_buy
from poolwise.files.costs import PowerSection, PriceSection, loads_by_type, watts
from poolwise.files.machine import load_machine
from poolwise.metrics.power import Load, mean_watts, price
from poolwise.studies import load

MACHINE = """version = 1
[[node]]
name = "server"
allocation = "shared"
cores = 10
memory = "8 GiB"
attributes = { price = 140, idle_watts = 58, busy_watts = 98 }
[[rack]]
nodes = { server = 2 }
[[pool]]
name = "memory"
per = "machine"
memory = "4 GiB"
attributes = { price = 25, idle_watts = 5, busy_watts = 5 }
"""
STUDY = """version = 1
machine = "machine.toml"
power = "power.toml"
prices = { price = { server = 100.0, memory = 5.0 }, price_per_gib = 5.0 }
[workload]
trace = "jobs.csv"
[scheduler]
placement = "pooled"
[performance]
model = "ideal"
[measure]
warm_up = 0
"""
POWER = """version = 1
watts_per_gib = 1.0
[idle_watts]
server = 50
memory = 1
[busy_watts]
server = 90
memory = 1
"""


@pytest.fixture
def study(tmp_path):
    for name, text in (("machine", MACHINE), ("study", STUDY), ("power", POWER)):
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "jobs.csv").write_text("id,submit_ns,duration_ns,request.cores,memory_mib\n1,0,1000000000,5,1024\n")
    return tmp_path / "study.toml"


def test_watts_and_dollars_match_values_by_hand(study):
    machine = load_machine(study.parent / "machine.toml")
    load_ = Load(np.array([0.5, 0.0, 0.25]), np.array([0.8, 0.0, 0.5]))
    table = {"idle_watts": {"server": 50.0, "memory": 1.0}, "busy_watts": {"server": 90.0, "memory": 1.0}, "watts_per_gib": 1.0}
    measured = loads_by_type(machine, load_)
    assert watts(PowerSection(**table), measured) == 58 + 20 + 58 + 5 == mean_watts(machine, load_)
    off = PowerSection(**table, off_when_idle=["server"])
    assert watts(off, measured) == pytest.approx(0.8 * 58 + 20 + 5)
    assert (
        dollars_to_buy(cost_items(PriceSection(price={"server": 100.0, "memory": 5.0}, price_per_gib=5.0), machine))
        == 2 * 140 + 25
    )


def test_tables_do_not_change_the_key_of_a_run(study):
    first = load(study).cells[0]
    others = [load(study, {"power.watts_per_gib": 2.0}), load(study, {"prices.price.server": 1.0})]
    assert {cell.cells[0].key for cell in others} == {first.key}
    assert len({str(cell.cells[0].costs.content()) for cell in (*others, load(study))}) == 3
    varied = load(study, {"vary.power.watts_per_gib": [1.0, 2.0], "seeds.count": 3})
    assert (len(varied.cells), len({cell.key for cell in varied.cells})) == (6, 3)


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ("server = 90\n", "", "power.busy_watts", "no entry for server"),
        ("server = ", "serverr = ", "power.idle_watts", "no entry for server"),
        ("server = 50", "server = -50", "power.idle_watts.server", "greater than or equal to 0"),
        ("watts_per_gib = 1.0", 'off_when_idle = ["gpu"]', "power.off_when_idle", "unknown type 'gpu'"),
        ("version = 1", "version = 2", "version", "unsupported version 2"),
    ],
)
def test_invalid_table_reports_file_field_and_remedy(study, old, new, field, words):
    file = study.parent / "power.toml"
    file.write_text(POWER.replace(old, new))
    with pytest.raises(InputError, match=words) as caught:
        load(study)
    assert caught.value.field == field
    assert str(caught.value.file).endswith("power.toml")
    assert caught.value.remedy


def test_whole_nodes_are_counted_individually(study):
    """Two whole nodes form one owner but cost 2 x (100 + 8 x 5) $, plus a pool of 4 GiB; their watts add up likewise."""
    path = study.parent / "machine.toml"
    path.write_text(MACHINE.replace('allocation = "shared"\n', ""))
    machine = load_machine(path)
    cell = load(study, {"scheduler.placement": "racks"}).cells[0]
    assert dollars_to_buy(cost_items(cell.costs.prices, cell.machine)) == 2 * 140 + 25 == price(machine)
    load_ = Load(np.array([0.25, 0.25]), np.array([0.5, 0.5]))
    measured = loads_by_type(machine, load_)
    assert measured["server"] == [2, 16, 0.5, 0.5, 4], "half a node is used and awake"
    assert watts(cell.costs.power, measured) == 2 * 58 + 20 + 5 == mean_watts(machine, load_)


def test_cost_items_include_fabric_power_and_ranges(study):
    cell = load(study, {"prices.price_per_rack": [7, 8, 9], "prices.price_per_kwh": 0.5, "prices.years": 2}).cells[0]
    items = {item.name: item for item in cost_items(cell.costs.prices, cell.machine, watts=1000)}
    fabric = items["rack's fabric"]
    assert (fabric.amount, fabric.least, fabric.most, fabric.dollars) == (1, 7, 9, 8)
    assert items["kWh of power"].dollars == 2 * 8766 * 0.5 and items["GiB of memory"].amount == 20
    assert dollars_to_buy(list(items.values())) == 2 * 140 + 25 + 8, "the purchase price excludes power"
    assert "kWh of power" not in {item.name for item in cost_items(cell.costs.prices, cell.machine)}, "watts are unknown"


def test_price_range_must_ascend(study):
    with pytest.raises(InputError, match="in ascending order") as caught:
        load(study, {"prices.price_per_gib": [5, 4, 6]})
    assert "price_per_gib" in caught.value.field
