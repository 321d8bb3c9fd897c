"""Running runs of a platform, indexed by expected end and by owner. The platform writes it, snapshots read it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model.run import Run

_arrangements = itertools.count()  # one counter for all tables, so that a number identifies one arrangement of one table


class RunTable:
    """Running runs: by number, by expected end, and by the owners that they touch.

    The rows that each run releases are in arrays padded to the widest placement. `released` therefore computes the resources
    that k ends release with one gather and one sum.

    Parameters
    ----------
    n_cell : number of cells (n_owner * n_resource) of the machine
    """

    def __init__(self, n_cell: int) -> None:
        self.n_cell = n_cell
        self.version = 0
        self.arrangement = next(_arrangements)  # changes whenever a run is added or removed
        self._runs: dict[int, Run] = {}
        self._slot: dict[int, int] = {}
        self._free_slots: list[int] = []
        self._occupants: dict[int, dict[int, None]] = {}
        self._sensitive: dict[int, dict[int, None]] = {}
        self._touched: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._working: dict[int, tuple[int, ...]] = {}  # owners on which the speed of a fetching run will depend
        self._cell = np.zeros((0, 0), dtype=np.int64)
        self._amount = np.zeros((0, 0), dtype=np.int64)
        self._ends = np.zeros(0, dtype=np.int64)  # ascending; only the first len(self) are valid
        self._order = np.zeros(0, dtype=np.int64)  # slots in the order of `_ends`

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, run: int) -> bool:
        return run in self._runs

    def __getitem__(self, run: int) -> Run:
        return self._runs[run]

    def __iter__(self) -> Iterator[Run]:
        """Iterate over the runs in the order of their numbers."""
        return iter(self._runs.values())

    def occupants(self, owner: int) -> Iterable[int]:
        """Return the runs placed on an owner or sensitive to it, in the order of their starts."""
        return self._occupants.get(owner, ())

    def sensitive(self, owner: int) -> Iterable[int]:
        """Return the runs whose speed depends on the occupants of an owner, in the order of their starts."""
        return self._sensitive.get(owner, ())

    def touched(self, run: int) -> tuple[int, ...]:
        """Return the owners that a run occupies."""
        return self._touched[run][0]

    def widen(self, n_cell: int) -> None:
        """Make room for the cells of owners that have joined."""
        self.n_cell = n_cell
        self.version += 1
        self.arrangement = next(_arrangements)

    @property
    def ends(self) -> IntArray:
        """(n_run,) expected ends, ascending (ties by start order)."""
        return self._ends[: len(self._runs)]

    @property
    def slots(self) -> IntArray:
        """(n_run,) slots in the order of `ends`."""
        return self._order[: len(self._runs)]

    def slots_of(self, runs: Iterable[int]) -> IntArray:
        """Return the slots of some runs, (k,)."""
        return np.array([self._slot[run] for run in runs], dtype=np.int64)

    def released(self, slots: IntArray) -> IntArray:
        """Return the amounts, (k, n_cell), that the runs in (k,) slots release when they end."""
        out = np.zeros((len(slots), self.n_cell), dtype=np.int64)
        cells = np.arange(len(slots))[:, None] * self.n_cell + self._cell[slots]
        np.add.at(out.reshape(-1), cells.reshape(-1), self._amount[slots].reshape(-1))
        return out

    def add_released(self, slots: IntArray, free: IntArray) -> None:
        """Increase the free amounts, (n_cell,), by those that the runs in (k,) slots release when they end."""
        np.add.at(free, self._cell[slots].reshape(-1), self._amount[slots].reshape(-1))

    def add(self, run: Run, cells: IntArray, sensitive: Iterable[int]) -> None:
        """Insert a run, given the `cells` of its placement rows, (n_row,), and the owners that its speed depends on."""
        if not self._free_slots:
            self._grow()
        width = len(cells)
        if width > self._cell.shape[1]:
            self._widen(width)
        slot = self._free_slots.pop()
        self._runs[run.id], self._slot[run.id] = run, slot
        self._cell[slot, :width], self._amount[slot, :width] = cells, run.placement.amount
        self._cell[slot, width:], self._amount[slot, width:] = 0, 0
        self._insert(slot, run.expected_end, len(self._runs) - 1)
        working = set(sensitive)
        depends = tuple(sorted(working if run.fetch is None else working.union(run.fetch.touches)))
        occupied = tuple(sorted({*run.placement.owners(), *depends}))
        self._touched[run.id] = occupied, depends
        if run.fetch is not None:
            self._working[run.id] = tuple(sorted(working))
        for owner in occupied:
            self._occupants.setdefault(owner, {})[run.id] = None
        for owner in depends:
            self._sensitive.setdefault(owner, {})[run.id] = None
        self.version += 1
        self.arrangement = next(_arrangements)

    def remove(self, run: int) -> Run:
        """Remove a run and return it."""
        gone, slot = self._runs[run], self._slot.pop(run)
        self._withdraw(slot, gone.expected_end)
        del self._runs[run]
        self._free_slots.append(slot)
        self._working.pop(run, None)
        occupied, depends = self._touched.pop(run)
        for owner in occupied:
            del self._occupants[owner][run]
        for owner in depends:
            del self._sensitive[owner][run]
        self.version += 1
        self.arrangement = next(_arrangements)
        return gone

    def fetched(self, run: int) -> Run:
        """Begin the work of a run, which stops occupying the owners that only its fetching touched; return the run."""
        now = self._runs[run] = replace(self._runs[run], fetch=None)
        occupied, depends = self._touched[run]
        working = self._working.pop(run)
        staying = {*now.placement.owners(), *working}
        for owner in set(occupied) - staying:
            del self._occupants[owner][run]
        for owner in set(depends) - set(working):
            del self._sensitive[owner][run]
        self._touched[run] = tuple(sorted(staying)), working
        self.version += 1
        self.arrangement = next(_arrangements)
        return now

    def move(self, run: Run, cells: IntArray, sensitive: Iterable[int]) -> None:
        """Move a run to another placement; `cells` and `sensitive` are as in `add`."""
        self.remove(run.id)
        self.add(run, cells, sensitive)
        self._runs = dict(sorted(self._runs.items()))
        for index, owners in ((self._occupants, self._touched[run.id][0]), (self._sensitive, self._touched[run.id][1])):
            for owner in owners:
                index[owner] = dict(sorted(index[owner].items()))

    def expect(self, run: Run) -> None:
        """Change the expected end of a run."""
        slot = self._slot[run.id]
        self._withdraw(slot, self._runs[run.id].expected_end)
        self._runs[run.id] = run
        self._insert(slot, run.expected_end, len(self._runs) - 1)
        self.version += 1

    def _insert(self, slot: int, end: int, count: int) -> None:
        ends, order = self._ends, self._order
        at = int(ends[:count].searchsorted(end, side="right"))
        ends[at + 1 : count + 1] = ends[at:count]
        order[at + 1 : count + 1] = order[at:count]
        ends[at], order[at] = end, slot

    def _withdraw(self, slot: int, end: int) -> None:
        count = len(self._runs)
        ends, order = self._ends, self._order
        at = int(ends[:count].searchsorted(end))
        if order[at] != slot:  # several runs end together
            at += int((order[at:count] == slot).argmax())
        ends[at : count - 1] = ends[at + 1 : count]
        order[at : count - 1] = order[at + 1 : count]

    def _grow(self) -> None:
        old = len(self._ends)
        new = max(64, 2 * old)
        more = new - old
        self._ends = np.concatenate([self._ends, np.zeros(more, dtype=np.int64)])
        self._order = np.concatenate([self._order, np.zeros(more, dtype=np.int64)])
        blank = np.zeros((more, self._cell.shape[1]), dtype=np.int64)
        self._cell, self._amount = np.concatenate([self._cell, blank]), np.concatenate([self._amount, blank])
        self._free_slots.extend(range(new - 1, old - 1, -1))

    def _widen(self, width: int) -> None:
        blank = np.zeros((len(self._ends), width - self._cell.shape[1]), dtype=np.int64)
        self._cell = np.concatenate([self._cell, blank], axis=1)
        self._amount = np.concatenate([self._amount, blank], axis=1)
