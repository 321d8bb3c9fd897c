"""Output of the record of a live run: the scheduler's decisions compared with the actual starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poolwise.cli.console import warn
from poolwise.presentation.table import Table
from poolwise.quantities import SECOND, format_count, format_time

if TYPE_CHECKING:
    from poolwise.live.record import LiveRecord, RecordedJob
    from poolwise.presentation.answer import Answer


def _content(record: LiveRecord) -> dict[str, Any]:
    """Return a record as plain data: times in seconds since 1970, waits in seconds."""
    both = [job for job in record.jobs.values() if job.submitted is not None and job.started is not None and job.decided]
    summary: dict[str, Any] = {"jobs": len(record.jobs), "started_and_decided": len(both), "torn": record.torn}
    if both:
        summary["mean_wait_s"] = sum(_wait(job, job.started) or 0.0 for job in both) / len(both)
        summary["mean_wait_decided_s"] = sum(_wait(job, job.decided) or 0.0 for job in both) / len(both)
        summary["same_placement"] = sum(job.would == job.placement for job in both)
    rows = [
        {
            "job": name,
            "wait_s": _wait(job, job.started),
            "wait_decided_s": _wait(job, job.decided),
            "placement": list(job.placement),
            "decided_placement": list(job.would),
            "rejected": job.rejected,
        }
        for name, job in record.jobs.items()
    ]
    return {"about": dict(record.about), "summary": summary, "jobs": rows}


def warn_of_truncation(record: LiveRecord) -> None:
    """Warn if the last line of a record is incomplete."""
    if record.torn:
        warn(f"the last line of the record is incomplete; its {record.torn} characters are skipped")


def record_answer(record: LiveRecord) -> Answer:
    """Return the summary of a record, and its jobs, those with the largest differences in wait first."""
    from poolwise.presentation.answer import Answer

    def time(value: float | None) -> str:
        return "" if value is None else format_time(value)

    content, about = _content(record), record.about
    summary, because = content["summary"], []
    if summary["started_and_decided"]:
        waits = time(summary["mean_wait_s"]), time(summary["mean_wait_decided_s"])
        because.append(
            f"{summary['started_and_decided']:,} of them started and have a decision: their mean wait was {waits[0]}, "
            f"compared with {waits[1]} under the decisions of this scheduler; {summary['same_placement']:,} ran on the "
            "nodes that it chose"
        )
    jobs = sorted(content["jobs"], key=lambda job: -abs((job["wait_s"] or 0.0) - (job["wait_decided_s"] or 0.0)))
    rows = [
        [job["job"], time(job["wait_s"]), time(job["wait_decided_s"]), ", ".join(job["placement"]),
         job["rejected"] or ", ".join(job["decided_placement"])]
        for job in jobs
    ]  # fmt: skip
    counted = format_count(summary["jobs"], "job")
    return Answer(
        headline=f"{about.get('mode', 'live')} mode, {about.get('scheduler', 'scheduler unknown')}: {counted}",
        because=because,
        head=[Table("Jobs", ["job", "waited", "decided after", "ran on", "would have run on"], rows)],
        content=content,
    )


def _wait(job: RecordedJob, until: int | None) -> float | None:
    return None if job.submitted is None or until is None else max(until - job.submitted, 0) / SECOND
