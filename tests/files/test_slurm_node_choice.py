"""`poolwise import slurm` writes the placement that chooses nodes as Slurm does, and names what it leaves out."""

import tomllib
from pathlib import Path

import pytest

from poolwise.slurm.cluster import leaf_switches
from tests.helpers.slurm_import import FOLDER, edited, imported

TOPOLOGY = ["--topology", FOLDER / "topology.conf"]


def test_leaf_switches_have_nodes() -> None:
    assert leaf_switches(FOLDER / "topology.conf")["n05"] == ("s1", 3)


def test_racks_follow_topology_conf_if_slurm_places_by_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Slurm uses the first of equal leaf switches in topology.conf; topology/none does not read the file."""
    (tmp_path / "topology.conf").write_text(
        "SwitchName=s1 Nodes=n[04-06],fat2,gpu2\nSwitchName=s0 Nodes=n[01-03],fat1,gpu1\nSwitchName=top Switches=s[0-1]\n"
    )
    for plugin, names in (("topology/tree", ["s1", "s0"]), ("topology/none", ["s0", "s1"])):
        conf = edited(tmp_path, ("SelectType=", f"TopologyPlugin={plugin}\nSelectType="))
        assert imported(tmp_path / "out", "--topology", tmp_path / "topology.conf", conf=conf) == 0
        racks = tomllib.loads((tmp_path / "out" / "machine.toml").read_text())["rack"]
        assert [rack["name"] for rack in racks] == names
    assert "topology.conf" not in capsys.readouterr().err


def test_switches_between_leaves_and_top_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (FOLDER / "topology.conf").read_text().replace("SwitchName=top Switches=", "SwitchName=middle Switches=")
    (tmp_path / "topology.conf").write_text(f"{text}SwitchName=top Switches=middle\n")
    conf = edited(tmp_path, ("SelectType=", "TopologyPlugin=topology/tree\nSelectType="), (" Weight=10", ""))
    assert imported(tmp_path / "out", "--topology", tmp_path / "topology.conf", conf=conf) == 0
    assert 'placement = "topology_tree"' in (tmp_path / "out" / "slurm.toml").read_text()
    assert "topology.conf:4: a job uses the best-fitting leaf switches" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("select", ["select/cons_tres", "select/linear"])
def test_weights_of_nodes_are_attributes(select: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = edited(tmp_path, ("SelectType=select/cons_tres", f"SelectType={select}"))
    assert imported(tmp_path / "out", conf=conf) == 0
    nodes = tomllib.loads((tmp_path / "out" / "machine.toml").read_text())["node"]
    assert {node["name"]: node["attributes"]["weight"] for node in nodes} == {"n": 1, "n-2": 1, "fat": 10, "gpu": 1}
    assert "Weight=" not in capsys.readouterr().err


def test_least_loaded_nodes_are_a_placement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = ("SelectTypeParameters=CR_Core_Memory", "SelectTypeParameters=CR_Core_Memory,CR_LLN")
    assert imported(tmp_path / "out", conf=edited(tmp_path, changes)) == 0
    assert tomllib.loads((tmp_path / "out" / "slurm.toml").read_text())["placement"] == "worst_fit"
    assert "CR_LLN" not in capsys.readouterr().err


TREE = ("SelectType=", "TopologyPlugin=topology/tree\nSelectType=")
NO_GPUS, NO_WEIGHTS = (" Gres=gpu:a100:4(S:0-1)", ""), (" Weight=10", "")
BUSY = ("bf_continue", "bf_continue,bf_busy_nodes")


@pytest.mark.parametrize(
    ("changes", "words", "line"),
    [
        (
            [],
            [],
            '{ name = "topology_none", gpu_weights = false }  # TopologyPlugin is not set: topology/none; '
            "gpu_weights = true follows Slurm more closely, but requires the reference engine",
        ),
        ([NO_GPUS], [], '"topology_none"  # TopologyPlugin is not set: topology/none'),
        ([NO_GPUS, BUSY], TOPOLOGY, '"topology_none"  # TopologyPlugin is not set: topology/none'),
        ([TREE, NO_WEIGHTS], TOPOLOGY, '"topology_tree"  # TopologyPlugin=topology/tree (slurm.conf:10)'),
        (
            [TREE, BUSY],
            TOPOLOGY,
            '"first_fit"  # "topology_tree" uses the same nodes as Slurm, but requires the reference engine because of '
            'node weights and '
            "bf_busy_nodes",
        ),
    ],
)  # fmt: skip
def test_nodes_are_chosen_as_by_the_topology_plugin_where_kernels_choose_the_same(
    changes: list[tuple[str, str]], words: list[object], line: str, tmp_path: Path
) -> None:
    assert imported(tmp_path / "out", *words, conf=edited(tmp_path, *changes)) == 0
    assert f"placement = {line}" in (tmp_path / "out" / "slurm.toml").read_text().splitlines()


@pytest.mark.parametrize(
    ("plugin", "words", "select"),
    [
        ("topology/block", TOPOLOGY, "cons_tres"),
        ("topology/tree", [], "cons_tres"),
        ("topology/tree", TOPOLOGY, "linear"),
    ],
)
def test_topology_that_is_not_followed_is_named_as_left_out(
    plugin: str, words: list[object], select: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = edited(tmp_path, (TREE[0], TREE[1].replace("topology/tree", plugin)), ("select/cons_tres", f"select/{select}"))
    assert imported(tmp_path / "out", *words, conf=conf) == 0
    assert 'placement = "first_fit"' in (tmp_path / "out" / "slurm.toml").read_text()
    assert f"slurm.conf:10: TopologyPlugin={plugin}: jobs take the first nodes that fit" in capsys.readouterr().err


def test_topology_is_named_as_left_out_where_it_does_not_choose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change = ("=CR_Core_Memory", "=CR_Core_Memory,CR_LLN")
    assert imported(tmp_path / "out", *TOPOLOGY, conf=edited(tmp_path, TREE, change)) == 0
    error = capsys.readouterr().err
    assert "TopologyPlugin=topology/tree: the topology does not affect the choice of the least loaded nodes" in error


def test_selection_of_nodes_and_deferred_scheduling_are_named_as_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ("SelectTypeParameters=CR_Core_Memory", "SelectTypeParameters=CR_Core_Memory,CR_Pack_Nodes")
    conf = edited(tmp_path, changes, ("SchedulerParameters=", "SchedulerParameters=defer,"))
    assert "CR_Pack_Nodes" in conf.read_text() and "defer," in conf.read_text()
    assert imported(tmp_path / "out", conf=conf) == 0
    lines = capsys.readouterr().err.splitlines()
    warned = [line for line in lines if line.startswith("warning:")]
    assert any("slurm.conf:11: SelectTypeParameters=CR_PACK_NODES: the tasks of a job are placed as" in line for line in warned)
    assert any(
        "slurm.conf:8: SchedulerParameters=defer: jobs are also tested when they are submitted" in line for line in warned
    )
    assert not any("defer" in line or "CR_PACK" in line for line in lines if line not in warned)
