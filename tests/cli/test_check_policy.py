"""`poolwise check-policy`."""

from pathlib import Path

import pytest

from poolwise.cli import app
from poolwise.cli.app import run

app._discover()

MINE = """
from dataclasses import dataclass
from poolwise.interfaces import QueuePolicy


@dataclass(frozen=True)
class Newest(QueuePolicy):
    kind = "static"

    def priority(self, queue, snapshot):
        return queue.table.submit_s[queue.jobs]


@dataclass(frozen=True)
class Wobbly(Newest):
    def priority(self, queue, snapshot):
        return super().priority(queue, snapshot) + snapshot.now


class Needy:
    def __init__(self, setting):
        self.setting = setting


NUMBER = 3
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def test_valid_user_policy_passes_every_check(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check-policy", f"{mine}:Newest"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("ok      ") for line in lines)


def test_broken_contract_is_one_failed_line_and_exit_code_2(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check-policy", f"{mine}:Wobbly"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert [line for line in lines if line.startswith("failed")] == [
        line for line in lines if "keeps the promise of its kind: static, but the priority of the job in row" in line
    ]


def test_registered_names_and_modules_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check-policy", "sjf"]) == 0
    assert run(["check-policy", "poolwise.policies.order.priorities:FM"]) == 0
    assert "failed" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sfj", "did you mean 'sjf'?"),
        ("missing.py:Order", "no such file"),
        ("no.such.module:Order", "cannot import"),
        ("{mine}:Nowest", "did you mean 'Newest'?"),
        ("{mine}:NUMBER", "int is not a scheduler, order"),
        ("{mine}:Needy", "has settings without defaults"),
    ],
)
def test_invalid_name_is_one_error_without_traceback(
    mine: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    assert run(["check-policy", name.replace("{mine}", str(mine))]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err
