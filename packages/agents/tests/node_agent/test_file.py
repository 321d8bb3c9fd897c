"""Tests of the node agent's configuration, whose errors name line and remedy, and of its records."""

from pathlib import Path

import pytest

from poolwise.cli import app
from poolwise.errors import InputError
from poolwise.live.control_loop import exclusive_lock
from poolwise_agents.node_agent.config import load_node_agent
from poolwise_agents.node_agent.records import ClaimRecord, ClaimState, Records
from tests.helpers.node_agent import FILE, node_agent_file

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"{attribute.address}" }\n\n[template.remote]', '"{attribute.adress}" }\n\n[template.remote]', "attribute.adress"),
        ("{claim.uid}", "{claim.user}", "unknown placeholder 'claim.user'"),
        ("{claim.uid}", "{claim.uid", "cannot parse"),
        ('"/bin/attach"', '"attach"', "absolute path"),
        ('"/bin/attach"', '"/bin/{device}"', "absolute path"),
        ('template = "plain"', 'template = "plane"', "unknown template 'plane'"),
        ('name = "gpu-1"', 'name = "gpu-0"', "duplicate name 'gpu-0'"),
        ('name = "lent"', 'name = "gpu-a"', "duplicate name 'gpu-a'"),
        ('"141Gi"', '"141 GiB"', "is not a valid Kubernetes quantity"),
        ("address = ", "template = ", "is not a valid attribute name"),
        ('reach = "all"', 'reach = "rack"', "reach"),
        ('time_limit = "1 s"', "time_limit = 1", "is not a quantity; write a string with a number and a unit"),
        ('host = "/dev/null"', 'host = "/etc/passwd"', "device_nodes"),
        ("REMOTE =", '"RE MOTE" =', "environment variable"),
        ("attach = [", 'shell = "yes"\nattach = [', "unknown key 'shell'"),
        ("version = 1", "version = 2", "unsupported version 2"),
        ('driver = "gpu.fabric.example"', 'driver = "GPU;x"', "driver"),
    ],
)
def test_mistake_is_reported_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in FILE
    with pytest.raises(InputError, match=words) as caught:
        node_agent_file(tmp_path, FILE.replace(old, new))
    assert caught.value.file == tmp_path / "node-agent.toml" and caught.value.line and caught.value.remedy


def test_link_needs_either_an_interface_or_a_command(tmp_path: Path) -> None:
    for more in ("", 'interface = "eth0", command = ["/bin/true"], '):
        with pytest.raises(InputError, match="an interface or a command"):
            node_agent_file(tmp_path, FILE + f'[links]\nlink = [{{ name = "up", {more}bandwidth = "1 GB/s" }}]\n')


def test_shipped_example_is_valid_and_can_be_published(capsys: pytest.CaptureFixture[str], commands: None) -> None:
    example = ROOT / "deploy" / "kubernetes" / "node-agent.toml"
    assert set(load_node_agent(example).template) == {"lupine", "nvme-tcp"}
    assert app.run(["agent", "devices", str(example), "--node", "gpu-a", "--check"]) == 0
    assert "gpu-a publishes 2 devices in 2 slices" in capsys.readouterr().out


def test_only_one_agent_uses_a_folder(tmp_path: Path) -> None:
    with (
        exclusive_lock(tmp_path, "node agent"),
        pytest.raises(InputError, match="another node agent is using this folder"),
        exclusive_lock(tmp_path, "node agent"),
    ):
        pass
    with exclusive_lock(tmp_path, "node agent"):
        pass


def test_records_survive_a_restart_and_invalid_ones_are_errors(tmp_path: Path) -> None:
    record = ClaimRecord(
        uid="u", namespace="default", name="train", allocated="", devices=(), state=ClaimState.FAILED, reason="x"
    )
    Records(tmp_path).save(record)
    assert [*Records(tmp_path)] == [record]
    (tmp_path / ".u.json.draft").write_text("{")
    assert [*Records(tmp_path)] == [record] and not (tmp_path / ".u.json.draft").exists()
    (tmp_path / "v.json").write_text("{")
    with pytest.raises(InputError, match="is not a valid record") as caught:
        Records(tmp_path)
    assert caught.value.file == tmp_path / "v.json"
