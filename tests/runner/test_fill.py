"""Trials: each is run once, kept whole or not at all, and named when it fails."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import pytest

from poolwise.errors import InputError, PolicyError
from poolwise.hashing import digest
from poolwise.plans.dispatch_tasks import DispatchTask
from poolwise.reproductions import cached_measurements
from poolwise.runner import Local, Record, Store, TaskType, records, run_missing


@dataclass
class Squares(TaskType[int]):
    """Squares of numbers, with the number as a file; some numbers fail."""

    failing: dict[int, Exception] = field(default_factory=dict)
    ran: list[int] = field(default_factory=list)
    prepared: list[list[int]] = field(default_factory=list)

    def key(self, trial: int) -> str:
        return digest(str(trial))

    def label(self, trial: int) -> str:
        return f"n={trial}"

    def run(self, trial: int) -> Record:
        if trial in self.failing:
            raise self.failing[trial]
        self.ran.append(trial)
        return Record({"square": trial**2, "pair": (trial, None), "of": {10: 1, 9: 2}}, {"txt": str(trial).encode()})

    def prepare(self, trials: Sequence[int]) -> None:
        self.prepared.append(list(trials))


class Told:
    """Progress that notes what it is told, and may interrupt."""

    def __init__(self, stop_after: int = 99) -> None:
        self.begun: list[tuple[int, int, int]] = []
        self.labels: list[str] = []
        self.stop_after = stop_after

    def begin(self, total: int, done: int, damaged: int) -> None:
        self.begun.append((total, done, damaged))

    def advance(self, label: str, seconds: float) -> None:
        self.labels.append(label)
        if len(self.labels) == self.stop_after:
            raise KeyboardInterrupt


def test_each_trial_is_run_once_and_read_in_the_order_asked_for(tmp_path):
    bench, store = Squares(), Store(tmp_path)
    with store.writing():
        found = records(bench, [3, 1, 3, 2], store, Local(1))
        assert [one["square"] for one in found] == [9, 1, 9, 4]
        assert found[0] == {"square": 9, "pair": [3, None], "of": {"10": 1, "9": 2}}, "as it is read, whoever ran it"
        assert store.kept_file(bench.key(2), "txt") == b"2"
        again, told = Squares(), Told()
        assert records(again, [1, 2, 5], store, Local(1), told)[2]["square"] == 25
    assert (told.begun, told.labels, again.prepared) == ([(3, 2, 0)], ["n=5"], [[5]])


def test_what_was_done_before_an_interrupt_stays(tmp_path):
    store, first = Store(tmp_path), Squares()
    with pytest.raises(KeyboardInterrupt), store.writing():
        run_missing(first, range(6), store, Local(1), Told(stop_after=2))
    assert len(first.ran) == 2
    second, told = Squares(), Told()
    with store.writing():
        run_missing(second, range(6), store, Local(1), told)
    assert told.begun == [(6, 2, 0)] and sorted(first.ran + second.ran) == list(range(6))


def test_those_that_took_longest_go_first_and_unknown_ones_before_all(tmp_path):
    store, bench = Store(tmp_path), Squares()
    with store.writing():
        for trial, seconds in ((1, 5.0), (2, 50.0), (3, 0.5)):
            store.write("of before", Record({}), bench.label(trial), seconds)
        run_missing(bench, [1, 2, 3, 4], store, Local(1))
    assert bench.ran == [4, 2, 1, 3]


@pytest.mark.parametrize(
    ("error", "kind"), [(InputError("wrong", field="f", remedy="r"), InputError), (PolicyError("wrong"), PolicyError)]
)
def test_an_error_names_the_trial(tmp_path, error, kind):
    store = Store(tmp_path)
    with pytest.raises(kind, match=r"wrong \(in the cell n=3\)"), store.writing():
        run_missing(Squares({3: error}), [1, 2, 3], store, Local(1))


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_programs_own_names_the_trial_too(tmp_path, jobs):
    cases = [DispatchTask(order, 0, 0) for order in range(2)]  # of a module that workers can import
    with pytest.raises(AttributeError) as caught:
        cached_measurements.measure_all(cases, attrgetter("nothing"), tmp_path, Local(jobs))
    assert any(f"in the cell {case}" in caught.value.__notes__ for case in cases)


def test_a_reproduction_is_the_only_writer_of_its_folder(tmp_path):
    with Store(tmp_path).writing(), pytest.raises(InputError, match="another run is writing"):
        cached_measurements.measure_all([], dict, tmp_path, Local(1))
