"""Class order: against sorting, with dispatch, and without classes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.dispatch.replay import unsupported
from poolwise.errors import InputError
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from tests.helpers.random_dispatch import POLICIES, Naive, policy_of, study

RATES = np.zeros((6, 7))
RATES[0, 2] = 1.0


@settings(max_examples=25)
@given(classes=st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_one_unit_serves_by_class_then_age(classes: list[int]) -> None:
    tasks = vinesim.TaskList.of_jobs([1] * len(classes), 2, 10)
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(0, 0, 0)]), tasks, RATES)
    workload = replace(case.workload, attributes={**case.workload.attributes, "class": np.array(classes)})
    scheduler = Dispatch(order=make("orders", "classes"))
    objection = unsupported(RunSpec(workload, case.machine, scheduler, case.model, case.model))
    in_order = classes == sorted(classes)
    assert (objection is None) == in_order
    assert objection is None or objection.why == "order Classes has no kernel: it is not arrival order"
    schedule = simulate(workload, case.machine, scheduler, model=case.model).schedule
    assert schedule.job.tolist() == sorted(range(len(classes)), key=lambda job: (classes[job], job))


@pytest.mark.parametrize("entry", POLICIES, ids=[f"{name}-{kw}" for name, kw in POLICIES])
def test_random_studies_match_the_naive_scheduler(entry: tuple[str, dict[str, object]]) -> None:
    for seed in range(8):
        this, policy = study(seed, 40), policy_of(entry)
        case = this.case()
        column = case.workload.attributes["parent_job_id"].astype(np.int64) * 7919 % 3
        classes = dict(zip(case.workload.attributes["parent_job_id"].tolist(), column.tolist(), strict=True))
        workload = replace(case.workload, attributes={**case.workload.attributes, "class": column})
        scheduler = Dispatch(policy, make("orders", "classes"))
        schedule = simulate(workload, case.machine, scheduler, model=case.model, seed=seed).schedule
        assert schedule.done.all() and not schedule.refused
        runs = zip(schedule.job.tolist(), schedule.start.tolist(), schedule.end.tolist(), schedule.owner.tolist(), strict=True)
        assert [run[1:] for run in sorted(runs, key=lambda run: run[0])] == Naive(this, policy, seed, classes).run(), seed


def test_workload_without_classes_is_rejected() -> None:
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(0, 0, 0)]), vinesim.TaskList.of_jobs([1], 2, 10), RATES)
    with pytest.raises(InputError, match="no classes") as caught:
        simulate(case.workload, case.machine, Dispatch(order=make("orders", "classes")), model=case.model)
    assert caught.value.field == "class"
