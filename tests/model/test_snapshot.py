"""Snapshots and the run table, compared with a slow reference on random sequences of operations."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.model import Machine, Placement, Run, Snapshot, Workload, releases
from poolwise.model.run_table import RunTable
from poolwise.model.snapshot import OVERDUE
from poolwise.performance.ideal import Ideal
from poolwise.quantities import SECOND

MACHINE = Machine.of_racks(2, 8, local=64, pool=1000)  # owners 0, 1: nodes; 2, 3: pools
WORKLOAD = Workload.of(np.zeros(3, dtype=np.int64), np.array([2, 3, 4]) * SECOND)


@dataclass(frozen=True)
class Listed(Ideal):
    """Makes runs on pool 2 depend on pool 3 too: occupants without a placement row."""

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        return (2, 3) if 2 in placement.owners() else ()


class Reference:
    """A list of runs that is searched each time."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.runs: list[Run] = []
        self.imagined: list[Run] = []

    def end(self, run: Run) -> int:
        return self.now + OVERDUE if run.expected_end <= self.now else run.expected_end

    def ends(self) -> list[tuple[int, Run]]:
        """Return the expected ends; those of imagined runs as given."""
        return [(self.end(run), run) for run in self.runs] + [(run.expected_end, run) for run in self.imagined]

    def free(self, time: int) -> np.ndarray:
        free = MACHINE.capacity.copy()
        for end, run in self.ends():
            if end > time:
                for _, owner, resource, amount in run.placement.rows():
                    free[owner, resource] -= amount
        return free

    def occupants(self, owner: int, time: int) -> list[int]:
        """Return the starts of runs on an owner or sensitive to it that still run at a time; starts identify the runs."""
        here = []
        for end, run in self.ends():
            owners = set(run.placement.owners())
            if 2 in owners:
                owners |= {2, 3}
            if end > time and owner in owners:
                here.append(run.start)
        return here


placements = st.lists(
    st.tuples(st.just(0), st.integers(0, 3), st.integers(0, 1), st.integers(0, 5)), min_size=1, max_size=6
).map(Placement.of)  # rows of a cell may repeat
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), placements, st.integers(0, 12)),
        st.tuples(st.just("remove"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("expect"), st.integers(0, 99), st.integers(0, 12)),
    ),
    max_size=40,
)


def build(operations: list[tuple[str, object, int]], now: int) -> tuple[Reference, RunTable]:
    reference, table = Reference(now), RunTable(MACHINE.capacity.size)
    for number, (what, thing, seconds) in enumerate(operations):
        if what == "add":
            run = Run(number, number % 3, (0,), thing, number, seconds * SECOND)
            reference.runs.append(run)
            table.add(run, thing.owner * 2 + thing.resource, (2, 3) if 2 in thing.owners() else ())
        elif reference.runs:
            at = thing % len(reference.runs)
            old = reference.runs[at]
            if what == "remove":
                assert table.remove(old.id) is old
                del reference.runs[at]
            else:
                new = Run(old.id, old.job, old.tasks, old.placement, old.start, seconds * SECOND)
                reference.runs[at] = new
                table.expect(new)
    return reference, table


@settings(deadline=None)
@given(steps)
def test_run_table_has_ends_order_occupants_and_releases(operations: list[tuple[str, object, int]]) -> None:
    reference, table = build(operations, 0)
    assert len(table) == len(reference.runs)
    assert sorted(run.id for run in table) == sorted(run.id for run in reference.runs)
    assert table.ends.tolist() == sorted(run.expected_end for run in reference.runs)
    released = table.released(table.slots)
    for row, end in zip(released, table.ends.tolist(), strict=True):
        same = [run for run in reference.runs if run.expected_end == end]
        rows = []
        for run in same:
            amounts = np.zeros(table.n_cell, dtype=np.int64)
            np.add.at(amounts, run.placement.owner * 2 + run.placement.resource, run.placement.amount)
            rows.append(amounts.tolist())
        assert row.tolist() in rows
    for owner in range(4):
        assert [table[n].start for n in table.occupants(owner)] == reference.occupants(owner, -1)
        assert list(table.sensitive(owner)) == [run.id for run in reference.runs if owner >= 2 and 2 in run.placement.owners()]


@settings(deadline=None, max_examples=100)
@given(
    steps,
    st.integers(0, 8),
    st.lists(st.tuples(placements, st.integers(1, 9)), max_size=3),
    st.lists(st.tuples(st.sampled_from(("at", "start")), st.integers(0, 6), placements, st.integers(1, 9)), max_size=4),
)
def test_look_ahead_agrees_with_the_reference(
    operations: list[tuple[str, object, int]],
    seconds: int,
    starts: list[tuple[Placement, int]],
    walk: list[tuple[str, int, Placement, int]],
) -> None:
    """Look ahead and imagine starts in any order; overdue runs are judged by the platform's present time."""
    now = seconds * SECOND
    reference, table = build(operations, now)
    view = Snapshot(now, MACHINE, WORKLOAD.table, MACHINE.capacity, reference.free(now), table, Listed())
    time, count = now, 1000

    def imagine(placement: Placement, length: int) -> None:
        nonlocal view, count
        end = time + length * SECOND
        view = view.with_started(0, placement, end=end)
        reference.imagined.append(Run(-count, 0, (0,), placement, time, end))
        count += 1

    for placement, length in starts:
        imagine(placement, length)
    compare(view, reference, time)
    for what, later, placement, length in walk:
        if what == "start":
            imagine(placement, length)
        else:
            time += later * SECOND
            view = view.at(time)
        compare(view, reference, time)


def compare(snapshot: Snapshot, reference: Reference, time: int) -> None:
    assert snapshot.now == time
    np.testing.assert_array_equal(snapshot.free, reference.free(time))
    for owner in range(4):
        assert [snapshot.run(n).start for n in snapshot.occupants(owner)] == reference.occupants(owner, time)
    assert len(list(snapshot.runs())) == sum(end > time for end, _ in reference.ends())
    assert snapshot.n_run == len(list(snapshot.runs()))
    expected = sorted({end for end, _ in reference.ends() if end > time})
    assert snapshot.ends().tolist() == expected
    for block, wide in ((1, 1024), (256, 1024), (16, 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(releases, "WIDE", wide)
            states = [(ends, free.copy()) for ends, free in snapshot.futures(block)]
        assert [end for ends, _ in states for end in ends.tolist()] == expected
        for ends, free in states:
            for k, end in enumerate(ends.tolist()):
                np.testing.assert_array_equal(free[k], reference.free(end))
    for end in expected:
        then = snapshot.at(end)
        np.testing.assert_array_equal(then.free, reference.free(end))
        for owner in range(4):
            assert [then.run(n).start for n in then.occupants(owner)] == reference.occupants(owner, end)


def test_overdue_run_is_expected_to_end_in_one_second() -> None:
    table = RunTable(MACHINE.capacity.size)
    held = Placement.of([(0, 0, 0, 3)])
    table.add(Run(0, 0, (0,), held, 0, 5 * SECOND), held.owner * 2 + held.resource, ())
    free = MACHINE.capacity.copy()
    free[0, 0] -= 3
    view = Snapshot(9 * SECOND, MACHINE, WORKLOAD.table, MACHINE.capacity, free, table, Ideal())
    ((ends, states),) = view.futures()
    assert ends.tolist() == [10 * SECOND]
    assert states[0, 0, 0] == 8
    assert view.at(10 * SECOND - 1).free[0, 0] == 5
    assert view.at(10 * SECOND).free[0, 0] == 8


def test_imagined_start_ends_after_its_requested_time() -> None:
    view = Snapshot(0, MACHINE, WORKLOAD.table, MACHINE.capacity, MACHINE.capacity, RunTable(MACHINE.capacity.size), Ideal())
    held = Placement.of([(0, 1, 0, 2)])
    assert view.expected_end(1, held) == 3 * SECOND
    later = view.with_started(1, held)
    assert [run.expected_end for run in later.runs()] == [3 * SECOND]
    assert view.free[1, 0] == 8  # the original snapshot is unchanged
    assert later.free[1, 0] == 6
