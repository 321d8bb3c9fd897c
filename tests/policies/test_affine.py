"""Affine queue orders: columns checked by plain arithmetic, and the known orders that belong to the family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError, PolicyError
from poolwise.files.component import Component
from poolwise.interfaces import QueuePolicy
from poolwise.model import Machine, Workload
from poolwise.policies.order.affine import Affine, LogTerm, PowerTerm
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.traces.generators import generate

MACHINE = Machine.of_racks(1, 4, local=2048, pool=0)
SMALL = st.integers(-8, 8).map(lambda n: n / 4)


@given(
    st.tuples(st.integers(1, 10**6), st.integers(1, 5000), st.integers(0, 10**6)),
    st.tuples(SMALL, SMALL, SMALL, SMALL, SMALL),
    st.tuples(SMALL, SMALL, SMALL, SMALL),
)
def test_columns_are_products_of_powers_and_sums_of_logarithms(
    job: tuple[int, int, int], power: tuple[float, ...], log: tuple[float, ...]
) -> None:
    seconds, nodes, memory = job
    single = Workload.of(
        np.array([0]), np.array([seconds * SECOND]), requests={"nodes": np.array([nodes]), "memory": np.array([memory])}
    )
    pool = max(memory - 2048, 0) * nodes
    demand = seconds, nodes, 1 + memory / 1024, 1 + pool / 1024
    order = Affine(PowerTerm(*power), PowerTerm(2 * power[0], *power[1:]), LogTerm(*log))
    offset, slope = order.lines(np.array([0]), single.table, MACHINE)
    product = power[0] * math.prod(d**p for d, p in zip(demand, power[1:], strict=True))
    total = sum(math.log10(d) * p for d, p in zip(demand, log, strict=True))
    assert slope[0] == pytest.approx(product, rel=1e-9, abs=1e-300)
    assert offset[0] == pytest.approx(2 * product + total, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("known", "member"),
    [
        (make("orders", "sjf"), Affine(PowerTerm(), PowerTerm(-1.0, runtime=1.0))),
        (make("orders", "area"), Affine(PowerTerm(), PowerTerm(-1.0, runtime=1.0, nodes=1.0))),
        (make("orders", "fair"), Affine(PowerTerm(1.0, runtime=-1.0))),
        (make("orders", "fcfs"), Affine()),
    ],
    ids=["sjf", "area", "fair", "fcfs"],
)
def test_known_orders_are_members(known: QueuePolicy, member: Affine) -> None:
    load = generate("perlmutter_like", jobs=300, seed=4)
    machine = Machine.of_racks(4, 100, local=2**19, pool=2**22)
    runs = [simulate(load, machine, ListScheduler(order)).schedule for order in (known, member)]
    assert runs[0].job.tolist() == runs[1].job.tolist() and runs[0].start.tolist() == runs[1].start.tolist()
    assert len(runs[0].job) == 300


def test_component_settings_build_the_terms() -> None:
    written = Component(name="affine", rise={"scale": 1.0, "runtime": -0.5}, logs={"nodes": 2.0})
    assert written.make("orders") == Affine(PowerTerm(1.0, -0.5), logs=LogTerm(nodes=2.0))
    with pytest.raises(InputError, match="scala"):
        Component(name="affine", rise={"scala": 1.0}).make("orders")


def test_slopes_out_of_range_are_rejected() -> None:
    load = generate("perlmutter_like", jobs=20, seed=4)
    with pytest.raises(PolicyError, match="slopes between 1e-60 and 1e\\+60"):
        Affine(PowerTerm(1.0, runtime=100.0)).lines(np.arange(20), load.table, MACHINE)
