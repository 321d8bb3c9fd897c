"""`poolwise import slurm --gres`: types of GPUs from gres.conf, and its contradictions with slurm.conf."""

import tomllib
from pathlib import Path

import pytest

from tests.helpers.slurm_import import edited, imported

GRES = """AutoDetect=nvml
# two types of GPUs
NodeName=gpu[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3] Cores=0-31
NodeName=gpu[1-2] Name=nic \\
  Count=2
Name=gpu NodeName=n[01-02],other1 Type=t4 Count=1
"""


def test_types_of_gpus_in_gres_conf_are_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gres.conf").write_text(GRES)
    conf = edited(tmp_path, ("Gres=gpu:a100:4(S:0-1)", "Gres=gpu:4"))
    assert imported(tmp_path / "out", "--gres", tmp_path / "gres.conf", conf=conf) == 0
    nodes = tomllib.loads((tmp_path / "out" / "machine.toml").read_text())["node"]
    assert next(node for node in nodes if node["name"] == "gpu")["features"] == ["a100"]
    printed = capsys.readouterr().err
    for words in (
        "gres.conf:1: AutoDetect=nvml is left out: GPUs are those of slurm.conf",
        "gres.conf:4: the resource nic is left out: jobs do not wait for it",
        "gres.conf:6: nodes other1 are not defined",
        "gres.conf:6: 1 GPU of n[01-02] is left out: nodes.conf:2 has no Gres=gpu",
    ):
        assert printed.count(words) == 1, words


def test_files_included_by_gres_conf_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gres.conf").write_text("AutoDetect=off\nInclude gpus.conf\nNodeName=gpu[1-2] Name=gpu Type=a100 Count=1\n")
    (tmp_path / "gpus.conf").write_text("# more\nNodeName=gpu[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-6]\n")
    assert imported(tmp_path / "out", "--gres", tmp_path / "gres.conf") == 0
    assert "gpus.conf:2, gres.conf:3: 8 GPUs of gpu[1-2] differ from 4" in capsys.readouterr().err


def test_missing_file_included_by_gres_conf_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gres.conf").write_text("AutoDetect=off\nInclude /etc/slurm/gpus.conf\n")
    assert imported(tmp_path / "out", "--gres", tmp_path / "gres.conf") == 2
    assert (
        "gres.conf, line 2, field 'Include': the included file '/etc/slurm/gpus.conf' cannot be read" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "Name=gpu Type=a100 File=/dev/nvidia[0-7]",
            "gres.conf:1: 8 GPUs of gpu[1-2] differ from 4 in nodes.conf:5, which are used",
        ),
        ("Name=gpu Type=h100 Count=4", "gres.conf:1: types h100 of gpu[1-2] differ from a100 in nodes.conf:5"),
        ("Name=gpu Count=4", ""),
        ("AutoDetect=off Name=gpu Type=a100 File=/dev/nvidia[0-1],/dev/nvidia[2-3]", ""),
    ],
)
def test_contradictions_of_gres_conf_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    (tmp_path / "gres.conf").write_text(f"NodeName=gpu[1-2] {line}\n")
    assert imported(tmp_path / "out", "--gres", tmp_path / "gres.conf") == 0
    printed = capsys.readouterr().err
    assert words in printed and (words or "gres.conf" not in printed)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Name=gpu Fiel=/dev/nvidia0", "unknown key 'Fiel'"),
        ("\nName=gpu Count=many", "'many' is not a number of resources"),
        ("Type=a100", "the line has no Name"),
        ("Name=gpu NodeName=n[3-1]", "is not a valid range"),
        ("Name=gpu a100", "'a100' is not KEY=VALUE"),
        ("Name=gpu Count=2 File=/dev/nvidia[0-3]", "Count=2 differs from the 4 files"),
    ],
)
def test_invalid_gres_conf_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    (tmp_path / "gres.conf").write_text(text)
    assert imported(tmp_path / "out", "--gres", tmp_path / "gres.conf") == 2
    printed = capsys.readouterr().err
    assert words in printed and f"line {1 + text.startswith(chr(10))}" in printed
