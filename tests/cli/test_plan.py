import json

import polars as pl
import pytest

from poolwise.cli import app as cli

SMALL = ["--set", "workload.jobs=300", "--set", "measure.warm_up=50", "--set", "plan.certainty.over=nothing"]
SMALL += ["--set", "plan.certainty.min=1", "--set", "plan.size.1.values=['16 GiB', '32 GiB']", "--jobs", "1"]


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.long
def test_shipped_plan_is_answered_and_exported(tmp_path, capsys):
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    words = ("plan", "cerit-pools", "--out", tmp_path / "out", *SMALL, "--json", "--csv", csv, "--parquet", parquet)
    code, out, err = call(capsys, *words)
    content = json.loads(out)
    assert code == 0 and content["status"] == "decided" and content["provenance"]["plan"]["plan"] == "cerit-pools"
    assert "[1] 2048 GiB of pool memory in each rack and 32 GiB of memory in each thin node: " in err
    assert content["notes"] and all(f"note: {note}" in err for note in content["notes"]) and "warning: " not in err
    for name in ("plan.json", "candidates.csv", "candidates.parquet", "provenance.json", "report.html"):
        assert (tmp_path / "out" / name).stat().st_size
    assert pl.read_csv(csv).height == pl.read_parquet(parquet).height == content["simulations"]["candidates"]
    assert (tmp_path / "a.csv.provenance.json").exists() and (tmp_path / "a.parquet.provenance.json").exists()
    page = (tmp_path / "out" / "report.html").read_text()
    assert content["headline"] in page and "<svg" in page and 'class="chosen"' in page
    code, out, _ = call(capsys, *words[:-5])
    assert code == 0 and content["headline"] in out and "report.html" in out


def test_infeasible_plan_exits_with_3(tmp_path, capsys):
    target = 'plan.target=[{ metric = "mean_bounded_slowdown", at_most = 0.5 }]'
    code, out, err = call(capsys, "plan", "cerit-pools", "--out", tmp_path / "out", *SMALL, "--set", target, "--json")
    assert code == 3 and json.loads(out)["status"] == "infeasible" and "error: No candidate meets every target" in err


def test_invalid_input_exits_with_2_and_writes_nothing(tmp_path, capsys):
    out = tmp_path / "out"
    code, _, err = call(capsys, "plan", "cerit-poools", "--out", out)
    assert code == 2 and "did you mean 'cerit-pools'" in err and not out.exists()
    code, _, err = call(capsys, "plan", "cerit-pools", "--out", out, "--csv", tmp_path / "no" / "a.csv")
    assert code == 2 and "is not writable" in err and not out.exists()


def test_plans_are_listed(capsys):
    code, out, _ = call(capsys, "list", "plans")
    assert code == 0 and "cerit-pools" in out
