"""Execution of missing tasks: each runs once, is stored atomically, and is named in errors."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from poolwise.errors import InputError, PolicyError
from poolwise.hashing import digest
from poolwise.runner import Local, Record, Store, TaskRunner, TaskType


@dataclass
class Squares(TaskType[int]):
    """Task type that squares numbers and stores the number as a file; some numbers fail."""

    failing: dict[int, Exception] = field(default_factory=dict)
    ran: list[int] = field(default_factory=list)
    prepared: list[list[int]] = field(default_factory=list)

    def key(self, task: int) -> str:
        return digest(str(task))

    def label(self, task: int) -> str:
        return f"n={task}"

    def run(self, task: int) -> Record:
        if task in self.failing:
            raise self.failing[task]
        self.ran.append(task)
        return Record({"square": task**2, "pair": (task, None), "of": {10: 1, 9: 2}}, {"txt": str(task).encode()})

    def prepare(self, tasks: Sequence[int]) -> None:
        self.prepared.append(list(tasks))


class RecordedProgress:
    """Progress listener that records its calls and may interrupt."""

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


def test_each_task_runs_once_and_records_follow_the_requested_order(tmp_path):
    task_type, store = Squares(), Store(tmp_path)
    with store.writing():
        records = TaskRunner(store, Local(1)).records(task_type, [3, 1, 3, 2])
        assert [record["square"] for record in records] == [9, 1, 9, 4]
        assert records[0] == {"square": 9, "pair": [3, None], "of": {"10": 1, "9": 2}}, "content is as read from the store"
        assert store.read_file(task_type.key(2), "txt") == b"2"
        again, progress = Squares(), RecordedProgress()
        assert TaskRunner(store, Local(1), progress).records(again, [1, 2, 5])[2]["square"] == 25
    assert (progress.begun, progress.labels, again.prepared) == ([(3, 2, 0)], ["n=5"], [[5]])


def test_tasks_finished_before_an_interrupt_are_kept(tmp_path):
    store, first = Store(tmp_path), Squares()
    with pytest.raises(KeyboardInterrupt), store.writing():
        TaskRunner(store, Local(1), RecordedProgress(stop_after=2)).run(first, range(6))
    assert len(first.ran) == 2
    second, progress = Squares(), RecordedProgress()
    with store.writing():
        TaskRunner(store, Local(1), progress).run(second, range(6))
    assert progress.begun == [(6, 2, 0)] and sorted(first.ran + second.ran) == list(range(6))


def test_tasks_start_longest_first_and_unknown_before_all(tmp_path):
    store, task_type = Store(tmp_path), Squares()
    with store.writing():
        for task, seconds in ((1, 5.0), (2, 50.0), (3, 0.5)):
            store.write("earlier", Record({}), task_type.label(task), seconds)
        TaskRunner(store, Local(1)).run(task_type, [1, 2, 3, 4])
    assert task_type.ran == [4, 2, 1, 3]


class Parity(Squares):
    """Squares of which even and odd numbers are cheaper together."""

    def group(self, task: int) -> str:
        return str(task % 2)


def test_tasks_of_a_group_run_one_after_another_and_have_their_own_records(tmp_path):
    store, task_type = Store(tmp_path), Parity()
    with store.writing():
        assert [record["square"] for record in TaskRunner(store, Local(1)).records(task_type, [1, 2, 3, 4])] == [1, 4, 9, 16]
        assert task_type.ran == [1, 3, 2, 4]
        again = Parity(failing={8: InputError("wrong")})
        with pytest.raises(InputError, match=r"wrong \(in cell n=8\)"):
            TaskRunner(store, Local(1)).run(again, [2, 6, 8])
    assert again.ran == [6] and store.holds(again.key(6)) and not store.holds(again.key(8))


@pytest.mark.parametrize(
    ("error", "kind"), [(InputError("wrong", field="f", remedy="r"), InputError), (PolicyError("wrong"), PolicyError)]
)
def test_error_names_the_task(tmp_path, error, kind):
    store = Store(tmp_path)
    with pytest.raises(kind, match=r"wrong \(in cell n=3\)"), store.writing():
        TaskRunner(store, Local(1)).run(Squares({3: error}), [1, 2, 3])
