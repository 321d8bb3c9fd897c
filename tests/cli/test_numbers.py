"""Numbers and settings out of range: exit code 2 before anything else happens."""

import pytest

from poolwise.cli.app import run

LOG = "catalog:example-sacct.txt"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["simulate", LOG, "--processors", "99999999999999999999"], "less than or equal to 1099511627776"),
        (["explain", "log", LOG, "1", "--processors", "99999999999999999999"], "less than or equal to 1099511627776"),
        (["forecast", "backtest", LOG, "--processors", "99999999999999999999"], "less than or equal to 1099511627776"),
        (["forecast", "backtest", LOG, "--processors", "8", "--seed", "-1"], "greater than or equal to 0"),
        (["agent", "memory", "agent.toml", "--port", "65536"], "less than or equal to 65535"),
        (["agent", "devices", "agent.toml", "--port", "-1"], "greater than or equal to 0"),
        (["reproduce", "irop", "--set", "name=3"], "'irop' has no setting 'name'"),
        (["reproduce", "irop", "--set", "a=3"], "unknown setting of reproduction 'irop': 'a'\n  remedy: known: draws, seeds"),
        (["affinity", "gavel", "x.csv", "--set", "name=3"], "'gavel' has no setting 'name'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_value_out_of_range_exits_with_2(words, message, capsys):
    assert run(words) == 2
    assert message in capsys.readouterr().err


def test_format_without_strict_is_rejected(tmp_path, capsys):
    table = tmp_path / "jobs.csv"
    table.write_text("submit_ns,nodes,duration_ns\n0,1,5\n")
    assert run(["simulate", str(table), "--processors", "8", "--strict"]) == 2
    assert "unknown setting of format 'table': 'strict'" in capsys.readouterr().err
