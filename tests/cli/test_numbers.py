"""Numbers and settings on the command line that no run can have: an error with status 2, before anything else is done."""

import pytest

from poolwise.cli.app import run

LOG = "catalog:example-sacct.txt"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["simulate", LOG, "--processors", "99999999999999999999"], "less than or equal to 1099511627776"),
        (["explain", LOG, "1", "--processors", "99999999999999999999"], "less than or equal to 1099511627776"),
        (["forecast", "--backtest", LOG, "--processors", "99999999999999999999"], "less than or equal to 1099511627776"),
        (["forecast", "--backtest", LOG, "--processors", "8", "--seed", "-1"], "greater than or equal to 0"),
        (["agent", "node", "agent.toml", "--port", "65536"], "less than or equal to 65535"),
        (["node-agent", "agent.toml", "--port", "-1"], "greater than or equal to 0"),
        (["reproduce", "irop", "--set", "name=3"], "no setting of 'irop' is called 'name'"),
        (["reproduce", "irop", "--set", "a=3"], "unknown setting of reproduction 'irop': 'a'\n  remedy: known: none"),
        (["affinity", "gavel", "x.csv", "--set", "name=3"], "no setting of 'gavel' is called 'name'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_no_run_can_have_exits_with_2(words, said, capsys):
    assert run(words) == 2
    assert said in capsys.readouterr().err


def test_a_format_that_has_no_strict_says_so(tmp_path, capsys):
    table = tmp_path / "jobs.csv"
    table.write_text("submit_ns,nodes,duration_ns\n0,1,5\n")
    assert run(["simulate", str(table), "--processors", "8", "--strict"]) == 2
    assert "unknown setting of format 'table': 'strict'" in capsys.readouterr().err
