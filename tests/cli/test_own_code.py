"""User policies that fail: one message with file and line, no traceback."""

from functools import partial

import pytest

from poolwise import registry, simulation
from poolwise.cli import app as cli
from poolwise.conformance import check
from poolwise.errors import InputError, PolicyError
from poolwise.model import Machine
from poolwise.traces import read

HEAD = """from dataclasses import dataclass

import numpy as np

from poolwise.interfaces import AgingOrder, RecalculatedOrder

"""
ORDERS = {
    "nokind": (
        """
@dataclass(frozen=True)
class Mine:
    def priority(self, queue, snapshot):
        return np.zeros(len(queue))
""",
        "Mine has no kind",
        8,
    ),
    "badkind": (
        """
@dataclass(frozen=True)
class Mine:
    kind = "statik"

    def priority(self, queue, snapshot):
        return np.zeros(len(queue))
""",
        "Mine has the unknown kind 'statik'",
        8,
    ),
    "unfinished": (
        """
@dataclass(frozen=True)
class Mine(RecalculatedOrder):
    def last(self, now):
        return 0
""",
        "Mine has no at",
        8,
    ),
    "notaging": (
        """
@dataclass(frozen=True)
class Mine:
    kind = "linear"

    def priority(self, queue, snapshot):
        return np.zeros(len(queue))
""",
        "Mine has the kind 'linear' but does not derive from AgingOrder",
        8,
    ),
    "raises": (
        """
@dataclass(frozen=True)
class Mine:
    kind = "opaque"

    def priority(self, queue, snapshot):
        return np.zeros(len(queue)) / self.missing
""",
        "in priority: AttributeError: 'Mine' object has no attribute 'missing'",
        13,
    ),
    "shape": (
        """
@dataclass(frozen=True)
class Mine:
    kind = "opaque"

    def priority(self, queue, snapshot):
        return np.zeros(1 + len(queue))
""",
        "Mine must return",
        8,
    ),
    "broken": (
        """
@dataclass(frozen=True)
class Mine:
    kind = "static"

    def priority(self, queue, snapshot):
        return -queue.waited_s(snapshot.now)
""",
        "Mine does not behave as its kind declares: it is static, but the priority of the job in row",
        8,
    ),
    "syntax": ("class Mine(:\n", "cannot import the file", None),
    "exits": ("import sys\n\nsys.exit(7)\n", "cannot import the file: exits.py, line", None),
}


def written(folder, name, text=None):
    path = folder / f"{name}.py"
    path.write_text(HEAD + (ORDERS[name][0] if text is None else text))
    return path


def run(order, capsys, *more):
    words = ["simulate", "catalog:example-sacct.txt", "--machine", "cerit-racks", "--order", f"{order}:Mine", *more]
    code = cli.run(words)
    return code, capsys.readouterr()


@pytest.mark.parametrize("name", ORDERS)
def test_failing_order_is_one_message_with_file_and_line(commands, name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, message, line = ORDERS[name]
    code, captured = run(written(tmp_path, name).name, capsys, "--engine", "reference")
    assert code in (1, 2)
    assert message in " ".join(captured.err.split())
    assert f"{name}.py" in captured.err
    assert line is None or f"line {line}" in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_order_that_keeps_its_contract_is_reported_for_the_sample(commands, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = ORDERS["broken"][0].replace("-queue.waited_s(snapshot.now)", "-queue.table.requested_s[queue.jobs]")
    code, captured = run(written(tmp_path, "kept", source).name, capsys, "--engine", "reference", "--set", "workload.jobs=300")
    assert code == 0
    assert "Mine is declared static: verified at each pass for the first 200 jobs" in " ".join(captured.err.split())


def test_contract_is_reported_untested_if_no_job_waits(tmp_path):
    source = ORDERS["broken"][0].replace("-queue.waited_s(snapshot.now)", "-queue.table.requested_s[queue.jobs]")
    machine = Machine.of_racks(4, 500, local=10**6, cores=32)
    workload = read("catalog:example-sacct.txt", machine)
    run_result = simulation.simulate(workload, machine, f"{written(tmp_path, 'idle', source)}:Mine", engine="reference")
    assert any("not checked, because none of the first 200 jobs waited" in note for note in run_result.notes)
    assert simulation.simulate(workload, machine, "sjf", engine="reference").notes == ()
    with pytest.raises(PolicyError, match="does not behave as its kind declares"):
        simulation.simulate(workload, Machine.of_racks(1, 16, local=10**6, cores=32), f"{written(tmp_path, 'broken')}:Mine")


def test_study_reports_the_line_of_a_failing_policy(commands, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "raises")
    words = ["run", "cerit-pools", "--set", "workload.jobs=700", "--set", f"scheduler.order={tmp_path}/raises.py:Mine"]
    code = cli.run([*words, "--out", str(tmp_path / "out"), "--jobs", "1"])
    err = " ".join(capsys.readouterr().err.split())
    assert (code, "raises.py, line 13, in priority: AttributeError" in err) == (1, True)
    assert "Traceback" not in err


@pytest.mark.parametrize(("group", "part"), [("backfills", "select"), ("placements", "place"), ("models", "setup")])
def test_missing_method_is_named(tmp_path, group, part):
    path = written(tmp_path, "empty", "\n@dataclass(frozen=True)\nclass Mine:\n    pass\n")
    with pytest.raises(InputError, match=f"Mine has no {part}") as caught:
        registry.make(group, f"{path}:Mine")
    assert (str(caught.value.file), caught.value.line, caught.value.field) == (str(path), 8, part)


def test_checks_report_what_they_could_not_test(tmp_path):
    wrong = registry.load(f"{written(tmp_path, 'badkind')}:Mine")()
    lines = {result.name: result for result in check(wrong)}
    assert not lines["keeps the promise of its kind"].ok
    assert [name for name, result in lines.items() if not result.tested] == [
        "is deterministic",
        "leaves its inputs unchanged",
        "returns one float64 priority without NaN per waiting job",
    ]
    assert "not tested" in str(lines["is deterministic"])
    right = check(registry.make("orders", "sjf"))
    assert all(result.ok and result.tested for result in right)


def test_internal_errors_keep_their_traceback(commands, monkeypatch):
    monkeypatch.setattr("poolwise.traces.choose_format", partial(divmod, 1, 0))
    with pytest.raises(TypeError):
        cli.run(["trace", "info", "catalog:example-sacct.txt"])


@pytest.mark.parametrize("kind", ["static", "opaque"])
@pytest.mark.parametrize(
    "returned", ["3", "None", "['a'] * len(queue)", "np.zeros(len(queue) + 1)", "np.full(len(queue), np.nan)"]
)
def test_invalid_priorities_are_reported_with_the_line_of_the_order(tmp_path, capsys, kind, returned):
    body = f"@dataclass(frozen=True)\nclass Mine:\n    kind = '{kind}'\n\n    def priority(self, queue, snapshot):\n"
    (tmp_path / "mine.py").write_text(f"{HEAD}{body}        return {returned}\n")
    (tmp_path / "jobs.csv").write_text("submit_ns,nodes,duration_ns\n0,8,5\n0,8,5\n0,8,5\n")
    words = ["simulate", str(tmp_path / "jobs.csv"), "--processors", "8", "--order", f"{tmp_path / 'mine.py'}:Mine"]
    assert cli.run(words) == 1
    printed = capsys.readouterr().err
    assert "mine.py, line 7: Mine must return" in printed and "priorities without NaN" in printed
