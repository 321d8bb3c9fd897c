"""Queue, compared with a plain dictionary on random sequences of operations."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise.model import JobTable, Queue, Workload
from poolwise.quantities import SECOND

TASKS = np.array([1, 3, 4, 1])
N = len(TASKS)
WORKLOAD = Workload.of(np.array([0, 0, 5, 7]) * SECOND, np.full(N, SECOND), tasks=TASKS)

some = st.sets(st.integers(0, 3), min_size=1)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, N - 1), st.none() | some),
        st.tuples(st.just("take"), st.integers(0, N - 1), st.none() | some),
        st.tuples(st.just("pass"), st.just(0), st.none()),
    ),
    max_size=40,
)


class PlainQueue:
    """A queue as a dictionary: job -> its waiting tasks and its passes."""

    def __init__(self) -> None:
        self.tasks: dict[int, set[int]] = {}
        self.passes: dict[int, int] = {}

    def add(self, job: int, tasks: set[int]) -> None:
        self.tasks[job] = self.tasks.get(job, set()) | tasks
        self.passes.setdefault(job, 0)

    def remove_tasks(self, job: int, tasks: set[int]) -> None:
        self.tasks[job] -= tasks
        if not self.tasks[job]:
            del self.tasks[job], self.passes[job]

    def count_pass(self) -> None:
        self.passes = {job: seen + 1 for job, seen in self.passes.items()}


def assert_same(queue: Queue, plain: PlainQueue) -> None:
    rows = sorted(plain.tasks)
    assert queue.jobs.tolist() == rows
    assert not queue.jobs.flags.writeable
    assert len(queue) == len(rows)
    assert [job for job in range(N) if job in queue] == rows
    assert [queue.tasks(job) for job in rows] == [tuple(sorted(plain.tasks[job])) for job in rows]
    assert queue.passes().tolist() == [plain.passes[job] for job in rows]
    assert queue.waited_s(30 * SECOND).tolist() == [30 - int(WORKLOAD.submit[job]) / SECOND for job in rows]


@settings(max_examples=200)
@given(moves, st.sets(st.integers(0, N - 1)))
@example([("add", 1, {0}), ("take", 1, {0}), ("add", 1, None)], {1})  # removed task by task, and added again
def test_queue_holds_tasks_that_were_added_and_not_removed(
    moves: list[tuple[str, int, set[int] | None]], part: set[int]
) -> None:
    queue, plain = Queue(WORKLOAD.table), PlainQueue()
    for move, job, drawn in moves:
        every = set(range(int(TASKS[job])))
        if move == "add" and job in plain.tasks and drawn is None:
            continue  # a job arrives only once
        tasks = every if drawn is None else (drawn & every or every)
        removed = None if drawn is None else tuple(sorted(tasks))
        if move == "pass":
            queue.count_pass()
            plain.count_pass()
        elif move == "take" and job in plain.tasks:
            queue.remove_tasks(job, removed)
            plain.remove_tasks(job, tasks)
        elif move == "add":
            queue.add(job, removed)
            plain.add(job, tasks)
        assert_same(queue, plain)
    narrowed = PlainQueue()
    narrowed.tasks = {job: tasks for job, tasks in plain.tasks.items() if job in part}
    narrowed.passes = {job: plain.passes[job] for job in narrowed.tasks}
    only = queue.only(np.array(sorted(part), dtype=np.int64))
    assert_same(only, narrowed)
    only.count_pass()
    assert_same(queue, plain)  # the restricted queue is a separate object


def test_requeued_job_returns_to_its_position_with_new_passes() -> None:
    queue = Queue(WORKLOAD.table)
    for job in (3, 0, 2):
        queue.add(job)
    queue.count_pass()
    queue.remove_tasks(2)
    queue.count_pass()
    queue.add(2)
    queue.count_pass()
    assert queue.jobs.tolist() == [0, 2, 3]
    assert queue.passes().tolist() == [3, 1, 3]


def test_queue_of_many_jobs_equals_adding_them_one_by_one() -> None:
    g = np.random.default_rng(0)
    table = Workload.of(g.integers(0, 5, 60) * SECOND, np.full(60, SECOND)).table
    rows = g.permutation(60)[:40]
    one_by_one = Queue(table)
    for row in rows.tolist():
        one_by_one.add(row)
    at_once = Queue.of(table, rows)
    assert at_once.jobs.tolist() == one_by_one.jobs.tolist() and at_once.passes().tolist() == [0] * 40
    for queue in (one_by_one, at_once):
        queue.remove_tasks(int(rows[3]))
        queue.add(int(rows[3]))
        queue.remove_tasks(int(rows[7]))
    assert at_once.jobs.tolist() == one_by_one.jobs.tolist()
    named = JobTable(
        table.id, table.submit * 0, table.requested, table.tasks, {}, {}, name=[f"{9 - k % 10}{k}" for k in range(60)]
    )
    assert Queue.of(named, rows).jobs.tolist() == sorted(rows.tolist(), key=named.order_key)
