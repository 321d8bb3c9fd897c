"""Plans of pool sizes: the search compared with the full grid, certainty, sensitivity, resuming, errors."""

import itertools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from poolwise.errors import InputError
from poolwise.optimize.monotone import below
from poolwise.plans import plan
from poolwise.plans.plan import Answer
from poolwise.plans.search import search
from poolwise.plans.sizes import bought, priced
from poolwise.runner import Local, Store, TaskRunner
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import workload_of
from tests.helpers.kept_trials import forget, written

PLAN = """\
version = 1
title = "a small plan"
machine = "machine.toml"

[workload]
trace = "jobs.csv"

[scheduler]
order = "fm"

[measure]
warm_up = 5

[plan]
kind = "pools"
checks = 0

[[plan.size]]
key = "machine.pool.memory.memory"
min = "24 GiB"
max = "96 GiB"
step = "8 GiB"
price = "5 $/GiB"

[[plan.target]]
metric = "mean_bounded_slowdown"
at_most = 1.1
of = "reference"

[plan.reference]
"machine.pool.memory.memory" = "512 GiB"

[plan.certainty]
over = "nothing"
min = 1
"""
NODES = """
[[plan.size]]
key = "machine.node.thin.memory"
values = ["8 GiB", "16 GiB", "24 GiB", "32 GiB"]
price = "5 $/GiB"
"""


def write(folder: Path, text: str) -> Path:
    """Write the plan and a trace whose jobs all need remote memory and together exceed the machine."""
    rows = ["id,submit_ns,nodes,duration_ns,memory_mib"]
    for k in range(60):
        memory = (18, 26, 34)[k % 3] * 1024
        rows.append(f"{k + 1},{k * 90 * 10**9},{1 + k % 3},{(200 + 37 * (k % 11)) * 10**9},{memory}")
    (folder / "jobs.csv").write_text("\n".join(rows) + "\n")
    (folder / "plan.toml").write_text(text)
    return folder / "plan.toml"


def grid(problem, store: CellStore):
    """Judge every candidate, as a slow reference, and find the cheapest that meets the targets."""
    with store.writing():
        runs = problem._candidate_runs(TaskRunner(store, Local(1)))
        cost = priced(problem.sizes, bought(problem.sizes, problem.document))
        elements = list(itertools.product(*map(range, cost.shape)))
        verdicts = {element: runs.judge(element) for element in elements}
    keeping = [element for element in elements if verdicts[element].state == "keeps"]
    return cost, verdicts, min(keeping, key=lambda e: (cost[e], e), default=None)


def answer_of(problem, folder: Path) -> Answer:
    store = CellStore(folder / "out")
    with store.writing():
        return problem.answer(TaskRunner(store, Local(1)), lambda line: None)


def found(problem, store: CellStore):
    with store.writing():
        runs = problem._candidate_runs(TaskRunner(store, Local(1)))
        return search(runs, priced(problem.sizes, bought(problem.sizes, problem.document)), 0.1, problem.section.checks)


@pytest.mark.long
@pytest.mark.parametrize("text", [PLAN, PLAN + NODES], ids=["one size", "two sizes"])
@pytest.mark.parametrize("bound", [1.1, 1.6])
def test_the_search_finds_what_the_full_grid_finds(folder, text, bound):
    target = {"metric": "mean_bounded_slowdown", "at_most": bound, "of": "reference"}
    problem = plan.load_plan(write(folder, text), {"plan.target": [target]}).problem
    cost, verdicts, expected = grid(problem, CellStore(folder / "grid"))
    result = found(problem, CellStore(folder / "search"))
    assert expected is not None and result.best == expected
    assert all(result.verdicts[element] == verdicts[element] for element in result.verdicts)
    assert len({verdict.state for verdict in verdicts.values()}) == 2, "the target divides the candidates"
    if cost.ndim == 2:
        rivals = [e for e, v in verdicts.items() if v.state == "keeps" and not below(expected, e)]
        assert result.rival == min(rivals, key=lambda e: (cost[e], e), default=None)


def test_search_reports_and_corrects_violated_monotonicity(folder):
    """Scheduling anomaly: a pool of 56 GiB serves these jobs slightly worse than one of 48 GiB."""
    settings = {"plan.target": [{"metric": "mean_bounded_slowdown", "at_most": 1.01, "of": "reference"}], "plan.checks": 3}
    problem = plan.load_plan(write(folder, PLAN), settings).problem
    _, verdicts, expected = grid(problem, CellStore(folder / "grid"))
    assert verdicts[(3,)].state == "keeps" and verdicts[(4,)].state == "breaks" and verdicts[(5,)].state == "keeps"
    assert found(problem, CellStore(folder / "search")).best == expected == (3,)
    answer = answer_of(problem, folder)
    assert answer.content["assumption"]["contradictions"]
    assert any("contradict" in line for line in answer.sections["Certainty"])


def test_every_simulated_candidate_is_counted_compared_and_listed(folder):
    """The searches for tighter and looser targets simulate candidates that the plan's targets do not need."""
    settings = {
        "plan.target": [{"metric": "mean_bounded_slowdown", "at_most": 1.6, "of": "reference"}],
        "plan.sensitivity": 0.4,
    }
    answer = answer_of(plan.load_plan(write(folder, PLAN + NODES), settings).problem, folder)
    assert answer.candidates is not None
    assert answer.candidates.height == answer.content["simulations"]["candidates"]


def test_cost_covers_pools_of_all_racks_and_all_nodes(folder):
    problem = plan.load_plan(write(folder, PLAN + NODES)).problem
    cost = priced(problem.sizes, bought(problem.sizes, problem.document))
    pools, nodes = 2, 8
    for (a, pool), (b, local) in itertools.product(enumerate(range(24, 97, 8)), enumerate((8, 16, 24, 32))):
        assert cost[a, b] == pytest.approx(5.0 * (pools * pool + nodes * local))


RANGES = {
    "plan.size.0.price": ["5 $/GiB", "5 $/GiB", "200 $/GiB"],
    "plan.size.1.price": ["1 $/GiB", "5 $/GiB", "60 $/GiB"],
    "plan.target": [{"metric": "mean_bounded_slowdown", "at_most": 1.6, "of": "reference"}],
}


def test_answers_at_other_prices_are_the_cheapest_of_the_grid(folder):
    problem = plan.load_plan(write(folder, PLAN + NODES), RANGES).problem
    _, verdicts, _ = grid(problem, CellStore(folder / "grid"))
    answer = answer_of(problem, folder)
    answers = answer.content["prices"]
    assert [(other["size"].rpartition(".")[0], other["price"]) for other in answers] == [
        ("machine.pool.memory", 5.0), ("machine.pool.memory", 200.0), ("machine.node.thin", 1.0), ("machine.node.thin", 60.0),
    ]  # fmt: skip
    amount = {"machine.pool.memory.memory": 2, "machine.node.thin.memory": 8}  # pools and nodes of the machine
    for other in answers:
        price = dict.fromkeys(amount, 5.0) | {other["size"]: other["price"]}
        keeping = [
            (sum(price[s.key] * amount[s.key] * s.amount[k] / 1024 for s, k in zip(problem.sizes, e, strict=True)), e)
            for e, verdict in verdicts.items() if verdict.state == "keeps"
        ]  # fmt: skip
        cheapest = min(keeping)[1]
        assert other["sizes"] == {s.key: s.written[k] for s, k in zip(problem.sizes, cheapest, strict=True)}
    chosen = answer.content["chosen"]["sizes"]
    assert {other["sizes"] == chosen for other in answers} == {True, False}, "some prices change the answer, some do not"
    lines = answer.sections["Cost"]
    assert sum("the answer is" in line for line in lines) == sum(other["sizes"] != chosen for other in answers)
    assert any("the answer stays the same" in line for line in lines)
    assert [shown.name for shown, _ in answer.charts][-1] == "tornado"


def test_plan_card_shows_sizes_and_cost_of_today(folder):
    """Today: nodes of 64 GiB with small pools; the cost covers 8 nodes and 2 racks."""
    text = (folder / "machine.toml").read_text()
    assert text.count('memory = "16 GiB"') == 1
    (folder / "fat.toml").write_text(text.replace('memory = "16 GiB"', 'memory = "64 GiB"'))
    settings = {**RANGES, "today": {"name": "fat nodes", "machine": "fat.toml", "scheduler": {"order": "fcfs"}}}
    problem = plan.load_plan(write(folder, PLAN + NODES), settings).problem
    answer = answer_of(problem, folder)
    card = {row[0]: row[1:] for row in answer.card.rows}
    pool, local = (int(str(size).split()[0]) for size in answer.content["chosen"]["sizes"].values())
    small = next(
        int(line.split('"')[1].split()[0]) for line in text.partition("[[pool]]")[2].splitlines() if "memory =" in line
    )
    assert answer.card.columns == ["", "recommended", "fat nodes"]
    assert card["Memory in each thin node"] == [f"{local} GiB", "64 GiB"]
    assert card["Pool memory in each rack"] == [f"{pool} GiB", f"{small} GiB"]
    cost, today = 5.0 * (2 * pool + 8 * local), 5.0 * (2 * small + 8 * 64)
    least, most = 2 * pool * 5.0 + 8 * local * 1.0, 2 * pool * 200.0 + 8 * local * 60.0
    assert card["Cost of the sized parts"][0] == f"{cost:,.0f} $ ({least:,.0f} to {most:,.0f} $)"
    assert card["Cost of the sized parts"][1].startswith(f"{today:,.0f} $")
    label = "Savings compared with today" if today >= cost else "Added cost compared with today"
    assert card[label][0].startswith(f"{abs(today - cost):,.0f} $")
    assert card["Queue order"] == ["FM", "FCFS"]
    assert "55 jobs of the first seed" in answer.card.note
    assert len(answer.tables[0].rows) == len(answer.candidates) and answer.tables[0].chosen == answer.chosen


def test_plan_answer_has_headline_rows_and_plain_data(folder):
    loaded = plan.load_plan(write(folder, PLAN.replace("at_most = 1.1", "at_most = 1.5")))
    result = plan.plan(loaded, folder / "out", jobs=1)
    answer = result.answer
    assert (
        answer.status == "decided"
        and answer.headline.startswith("Choose ")
        and " of pool memory in each rack for " in answer.headline
    )
    content = json.loads((folder / "out" / "plan.json").read_text())
    assert content["chosen"]["cost_dollars"] == answer.candidates["cost_dollars"][answer.chosen]
    assert content["runner_up"]["cost_dollars"] > content["chosen"]["cost_dollars"]
    assert [moved["share"] for moved in content["sensitivity"]["targets"]] == [0.1, -0.1]
    tighter, looser = (moved["chosen"] for moved in content["sensitivity"]["targets"])
    assert looser["cost_dollars"] <= content["chosen"]["cost_dollars"] < tighter["cost_dollars"]
    steps = {step["sizes"]["machine.pool.memory.memory"]: step["verdict"] for step in content["sensitivity"]["steps"]}
    assert sorted(steps.values()) == ["breaks", "keeps"], "one step down is too little, one step up is enough"
    assert content["simulations"]["candidates"] < content["simulations"]["grid_candidates"]
    assert str(folder) not in (folder / "out" / "provenance.json").read_text()
    assert (folder / "out" / "candidates.csv").read_text().count("\n") == len(answer.candidates) + 1


def test_interrupted_plan_resumes(folder):
    loaded = plan.load_plan(write(folder, PLAN))
    first = plan.plan(loaded, folder / "one", jobs=1)
    names = ("plan.json", "candidates.csv", "candidates.parquet", "provenance.json")
    contents = {name: (folder / "one" / name).read_bytes() for name in names}
    (folder / "two").mkdir()
    shutil.copy(Store(folder / "one").file, folder / "two")
    before = written(folder / "two")
    removed = [key for key, number in before.items() if number < max(before.values())][::3]  # the last number would be reused
    forget(folder / "two", *removed)
    second = plan.plan(plan.load_plan(folder / "plan.toml"), folder / "two", jobs=1)
    assert {name: (folder / "two" / name).read_bytes() for name in names} == contents
    assert second.to_dict() == first.to_dict()
    assert removed and [key for key, number in written(folder / "two").items() if number != before[key]] == removed


def test_candidates_share_seeds_and_use_more_near_the_target(folder):
    settings = {"plan.certainty": {"over": "seeds", "min": 2, "max": 6}, "measure.warm_up": 5}
    problem = plan.load_plan(write(folder, PLAN), settings).problem
    store = CellStore(folder / "out")
    with store.writing():
        runs = problem._candidate_runs(TaskRunner(store, Local(1)))
        verdicts = [runs.judge((k,)) for k in range(10)]
        cells = [runs.cells((k,)) for k in range(10)]
    assert all([cell.seed for cell in mine] == list(range(6)) for mine in cells)
    for verdict in verdicts:
        interval = verdict.margins[0] if verdict.margins else None
        if verdict.state == "undecided":
            assert verdict.seeds == 6 and interval.low < 0 <= interval.high
        elif verdict.state == "keeps":
            assert interval.low >= 0
        else:
            assert verdict.unfinished or interval.high < 0
    assert len({verdict.seeds for verdict in verdicts}) > 1, "seeds are spent where they are needed"


def test_undecided_candidate_leaves_plan_undecided(folder):
    """At this level, no interval over three seeds clears the bound."""
    problem = plan.load_plan(write(folder, PLAN), {"plan.certainty": {"min": 2, "max": 3, "level": 0.999999}}).problem
    answer = answer_of(problem, folder)
    assert answer.status == "undecided" and "ndecided" in answer.headline
    assert "undecided" in answer.candidates["verdict"].to_list()


def test_intervals_over_jobs_are_paired(folder):
    problem = plan.load_plan(write(folder, PLAN), {"plan.certainty": {"over": "jobs"}}).problem
    store = CellStore(folder / "out")
    with store.writing():
        runs = problem._candidate_runs(TaskRunner(store, Local(1)))
        verdict = runs.judge((4,))
        series = runs.margins((4,), problem.targets[0], 1)
    mean = verdict.values[0]
    reference = runs._measured(None, 0)["mean_bounded_slowdown"]
    assert len(series) == 55 and series.mean() == pytest.approx(1.1 * reference - mean)
    assert verdict.margins[0].low < verdict.margins[0].mean < verdict.margins[0].high


def test_target_that_no_candidate_meets_is_infeasible(folder):
    loaded = plan.load_plan(write(folder, PLAN), {"plan.target": [{"metric": "mean_bounded_slowdown", "at_most": 0.5}]})
    answer = plan.plan(loaded, folder / "out", 1).answer
    assert answer.status == "infeasible" and answer.chosen is None
    assert answer.headline.startswith("No candidate meets every target (mean bounded slowdown of at most 0.5")


def test_candidate_that_cannot_run_a_job_misses_the_target(folder):
    """A job of 3 nodes with 34 GiB each fits on no nodes of 16 GiB with pools of 32 GiB."""
    problem = plan.load_plan(
        write(folder, PLAN), {"plan.target": [{"metric": "mean_bounded_slowdown", "at_most": 1000.0}]}
    ).problem
    result = found(problem, CellStore(folder / "out"))
    assert result.best == (2,)
    assert result.verdicts[(1,)].unfinished > 0 and result.verdicts[(1,)].state == "breaks"


def test_lower_bounds_and_fairness_can_be_targets(folder):
    targets = [
        {"metric": "throughput_per_100s", "at_least": 0.9, "of": "reference"},
        {"metric": "discrimination_s", "at_most": 1e9},
        {"metric": "mean_degradation", "at_most": 0.5},
    ]
    answer = plan.plan(plan.load_plan(write(folder, PLAN), {"plan.target": targets}), folder / "out", 1).answer
    assert answer.status == "decided"
    assert {"throughput_per_100s", "discrimination_s", "mean_degradation_margin"} <= set(answer.candidates.columns)
    assert np.isfinite(answer.candidates["discrimination_s"].to_numpy()).any()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"plan.kind": "poools"}, "did you mean 'pools'"),
        ({"plan.target": [{"metric": "mean_bounded_slowdwon", "at_most": 1.0}]}, "did you mean 'mean_bounded_slowdown'"),
        ({"plan.target": [{"metric": "mean_wait_s"}]}, "either at_most or at_least"),
        ({"plan.target": []}, "the plan has no target"),
        ({"plan.size.0.key": "machine.pool.memry.memory"}, "did you mean 'machine.pool.memory.memory'"),
        ({"plan.size.0.key": "machine.node.thin.allocation"}, "not a value"),
        ({"plan.size.0.price": "5 €"}, "is not a price"),
        ({"plan.size.0.price": "5 $/GiG"}, "did you mean 'GiB'"),
        ({"plan.size.0.price": ["5 $/GiB", "4 $/GiB", "6 $/GiB"]}, "are not three ascending prices"),
        ({"plan.size.0.price": ["5 $/GiB", "6 $/MiB", "7 $/GiB"]}, "in one unit"),
        ({"plan.size.0.step": "16 W"}, "units of memory"),
        ({"plan.size.0.values": ["16 GiB"]}, "either values, or min, max and step"),
        ({"plan.certainty.over": "sedes"}, "did you mean 'seeds'"),
        ({"plan.certainty": {"min": 4, "max": 3}}, "max must not be less than min"),
        ({"plan.reference": {"machine.pool.memory.memory": "5"}}, "unit is missing"),
        ({"plan.reference": {}}, "the plan has no reference"),
        ({"vary": {"scheduler.order": ["fm"]}}, "a plan cannot have [vary]"),
        ({"measure.population": "paper"}, "largest candidate"),
        ({"scheduler.order": "fmm"}, "did you mean 'fm'"),
    ],
)
def test_invalid_plan_is_rejected_before_any_run(folder, settings, words):
    with pytest.raises(InputError) as caught:
        plan.load_plan(write(folder, PLAN), settings)
    assert words in str(caught.value) and "plan.toml" in str(caught.value)


def test_errors_in_the_file_state_the_line(folder):
    text = PLAN.replace("at_most = 1.1", 'at_most = "1.3 x"')
    with pytest.raises(InputError) as caught:
        plan.load_plan(write(folder, text))
    assert caught.value.line == text[: text.index("at_most")].count("\n") + 1
    with pytest.raises(InputError, match=r"no \[plan\]"):
        plan.load_plan(folder / "study.toml")


DEVICES = """\
version = 1
machine = "catalog:nvme-pooled"

[workload]
generator = "nvme_mix"
settings = { jobs = 40, mean_gap_s = 120.0 }

[scheduler]
kind = "composition"

[performance]
model = "nvme_sharing"

[measure]
warm_up = 0

[plan]
kind = "pools"
sensitivity = 0.0

[[plan.size]]
key = "machine.device.nvme.count"
values = [4, 8, 12]
price = "600 $"

[[plan.target]]
metric = "missed_deadlines_pct"
at_most = 10.0

[plan.certainty]
over = "nothing"
min = 1
"""


def test_number_of_devices_meets_deadline_target(tmp_path):
    problem = plan.load_plan(write(tmp_path, DEVICES)).problem
    cost, verdicts, expected = grid(problem, CellStore(tmp_path / "grid"))
    assert cost.tolist() == [2400.0, 4800.0, 7200.0]
    result = found(problem, CellStore(tmp_path / "search"))
    assert expected is not None and result.best == expected
    with (store := CellStore(tmp_path / "grid")).writing():
        runs = problem._candidate_runs(TaskRunner(store, Local(1)))
        outcomes, workload = store.outcomes(runs.cells((0,))[0]), workload_of(runs.cells((0,))[0])
    deadline = workload.attributes["deadline"].astype(np.int64)
    missed = [not f or e > d for f, e, d in zip(outcomes.finished, outcomes.end, deadline, strict=True)]
    assert verdicts[(0,)].values[0] == pytest.approx(100 * sum(missed) / len(missed)) and 0 < sum(missed) < 40


def test_larger_candidate_that_meets_the_targets_is_named_without_a_runner_up(folder):
    target = {"metric": "mean_bounded_slowdown", "at_most": 1e6}
    values = (("machine.pool.memory.memory", ["64 GiB", "96 GiB"]), ("machine.node.thin.memory", ["16 GiB", "24 GiB"]))
    sizes = [{"key": key, "values": value, "price": "5 $/GiB"} for key, value in values]
    problem = plan.load_plan(write(folder, PLAN), {"plan.target": [target], "plan.size": sizes}).problem
    because = " ".join(answer_of(problem, folder).because)
    assert "There is no runner-up: every other combination that meets the targets has at least as much of everything" in because
    other = "64 GiB of pool memory in each rack and 24 GiB of memory in each thin node"
    assert f"The cheapest simulated one, {other}, costs 320 $ more" in because


@pytest.mark.parametrize(
    ("metric", "over", "unit"),
    [
        ("mean_wait_s", "nothing", r"\d (days|h|min|s)$"),
        ("p90_wait_s", "jobs", r"% of the jobs( \[|$)"),
        ("utilization", "jobs", r"\d %$"),
        ("mean_wait_s", "jobs", r"(days|h|min|s) \["),
    ],
)
def test_margins_have_a_unit(folder, metric, over, unit):
    settings = {"plan.target": [{"metric": metric, "at_most": 1e6}], "plan.certainty": {"over": over, "min": 1}}
    answer = answer_of(plan.load_plan(write(folder, PLAN), settings).problem, folder)
    sentence = next(line for line in answer.because if "inside the target by" in line)
    assert re.search(unit, sentence.removesuffix(".").split("inside the target by ")[1]), sentence
    cells = [row[-1] for table in answer.tables for row in table.rows]
    assert all(cell == "-" or re.search(unit, cell) for cell in cells), cells
