"""Waits for composed devices: the scheduler uses its index, the explanation reads the whole machine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.explain import WaitCause, explain_wait
from poolwise.metrics import Outcomes
from poolwise.policies.placement.nvme.policies import (
    NvmeDisaggregationAware,
    NvmeFirstFit,
    NvmeMaximizeComposition,
    NvmeMinimizeFragmentation,
)
from poolwise.schedulers.composition import CompositionScheduler
from tests.helpers.nvme_examples import KINDS, SHARING, machine, workload

POLICIES = (NvmeFirstFit(), NvmeMaximizeComposition(), NvmeMinimizeFragmentation(), NvmeDisaggregationAware())


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 1500), st.sampled_from(sorted(KINDS))), min_size=2, max_size=20),
    st.sampled_from(POLICIES),
    st.integers(1, 4),
)
def test_each_wait_for_devices_or_cores_has_a_shortage(jobs, policy, devices) -> None:
    on, load = machine(nodes=(25,), devices=((2000, 600),) * devices), workload(jobs)
    how = CompositionScheduler(placement=policy)
    schedule = simulate(load, on, how, model=SHARING).schedule
    wait = np.where(schedule.job_start >= 0, schedule.job_start - load.submit, -1)
    longest = int(np.argmax(wait))
    explanation = explain_wait(load, on, how, int(load.id[longest]), model=SHARING, outcomes=Outcomes.of(schedule))
    assert explanation.wait == max(0, wait[longest]) and bool(explanation.passes) == (wait[longest] > 0)
    for _, why in explanation.passes:
        assert why.cause is WaitCause.SHORT and why.resource in ("cores", "bandwidth", "storage") and why.needed > why.free


def test_wait_for_cores_names_them() -> None:
    on, load = machine(nodes=(25,)), workload([(0, "compute"), (1, "compute")])
    (episode,) = explain_wait(load, on, CompositionScheduler(), 2, model=SHARING).episodes
    assert (episode.reason.resource, episode.reason.needed, episode.free) == ("cores", 15, (10, 10))
    assert episode.end - episode.start == pytest.approx(899e9)
