"""The warm-up counts jobs by id, so that it ends once on live platforms, which give rows of finished jobs to later jobs."""

from poolwise.model import Machine, Workload
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp


def early(dispatcher, *ids: int) -> list[bool]:
    """Return whether each job of a table with these ids belongs to the warm-up; job k is submitted at k seconds."""
    table = Workload.of([f"{k} s" for k in ids], ["1 s"] * len(ids), id=list(ids)).table
    return [bool(which) for k in ids for which in dispatcher._early(table)[table.id == k]]


def test_first_jobs_by_submission_warm_up() -> None:
    dispatcher = WarmUp(ListScheduler(), jobs=2).open(Machine.flat(1), 0)
    assert early(dispatcher, 3, 1, 2) == [False, True, True]


def test_jobs_in_reused_rows_do_not_restart_the_warm_up() -> None:
    dispatcher = WarmUp(ListScheduler(), jobs=3).open(Machine.flat(1), 0)
    assert early(dispatcher, 1) == [True]
    assert early(dispatcher, 2, 3) == [True, True]  # the row of job 1 belongs to job 2 now
    assert early(dispatcher, 4, 3) == [False, True]
    assert early(dispatcher, 5, 6) == [False, False]
