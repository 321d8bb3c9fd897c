"""Remote-memory model: latency composed of parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Machine, Workload
from poolwise.performance.combined import Combined
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import FAR_NS, NEAR_NS, Latency, RemoteMemory
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler


def test_default_parts_add_up_to_the_latencies_of_the_paper() -> None:
    assert (Latency().near_ns, Latency().far_ns) == (NEAR_NS, FAR_NS)
    assert RemoteMemory(latency=Latency()).near_ns == NEAR_NS


@given(st.builds(Latency, *[st.integers(0, 99)] * 5, st.integers(1, 4), st.integers(1, 9)))
def test_each_part_counts_once_per_pass(parts: Latency) -> None:
    model = RemoteMemory(latency=parts)
    for ns, switches in ((model.near_ns, parts.near_switches), (model.far_ns, parts.far_switches)):
        path = [parts.port, parts.flight] * 4 + [parts.retimer] * 2 + [parts.switch] * switches
        assert ns == sum(path) + parts.switch_flight * (switches - 1)


def test_conflicting_and_negative_latencies_are_rejected() -> None:
    with pytest.raises(InputError, match="conflicting latencies") as caught:
        RemoteMemory(near_ns=200, latency=Latency())
    assert caught.value.field == "latency" and caught.value.remedy
    with pytest.raises(InputError, match="at least 0") as caught:
        Latency(port=-1)
    assert caught.value.field == "latency.port"
    with pytest.raises(InputError, match="near_switches must be at least 1"):
        Latency(near_switches=0)


def test_engines_use_the_sums_of_the_parts() -> None:
    """One job of 100 s on a node with half of its memory remote, at 90 ns: half the slowdown of 180 ns."""
    load = Workload.of(
        np.zeros(1, dtype=np.int64),
        np.array([100 * SECOND]),
        requests={"nodes": np.array([1]), "memory": np.array([128])},
        attributes={"u": np.array([10.5 / 11])},
    )
    machine = Machine.of_racks(1, 1, local=64, pool=64)
    model = RemoteMemory(latency=Latency(port=10, retimer=10, switch=30, flight=0))
    assert model.near_ns == 90
    for engine in ("reference", "compiled"):
        schedule = simulate(load, machine, ListScheduler(placement=RackPlacement()), model=model, engine=engine).schedule
        assert schedule.job_end[0] / SECOND == pytest.approx(100 * (1 + 1.66840426 / 2 * 0.5), abs=1e-8)


def test_combined_models_check_the_inputs_of_each_model() -> None:
    second = np.full(1, 10**9)
    jobs = Workload.of(second, second, attributes={"u": np.array([1.5])}).table
    with pytest.raises(InputError, match=r"\[0, 1\)"):
        Combined((Ideal(), RemoteMemory())).check(Machine.flat(1), jobs)
