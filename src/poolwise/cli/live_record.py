"""Output of the record of a live run: the scheduler's decisions compared with the actual starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poolwise.cli.console import print_line, warn
from poolwise.cli.tables import plain_table, print_table
from poolwise.units import SECOND, format_time

if TYPE_CHECKING:
    from poolwise.live.record import LiveRecord, RecordedJob

SHOWN = 40
"""Jobs that the table shows."""


def record_content(record: LiveRecord) -> dict[str, Any]:
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


def print_record(record: LiveRecord) -> None:
    """Print the summary and the jobs whose waits differ most."""

    def time(value: float | None) -> str:
        return "" if value is None else format_time(value)

    content = record_content(record)
    summary, about = content["summary"], record.about
    print_line(f"{about.get('mode', 'live')} mode, {about.get('scheduler', 'scheduler unknown')}: {summary['jobs']:,} jobs")
    if summary["started_and_decided"]:
        waits = time(summary["mean_wait_s"]), time(summary["mean_wait_decided_s"])
        print_line(
            f"{summary['started_and_decided']:,} of them started and have a decision: mean wait {waits[0]}, by this "
            f"scheduler's decisions {waits[1]}; {summary['same_placement']:,} on the nodes that it chose"
        )
    table = plain_table("job", "waited", "decided after", "ran on", "would have run on")
    jobs = sorted(content["jobs"], key=lambda job: -abs((job["wait_s"] or 0.0) - (job["wait_decided_s"] or 0.0)))
    for job in jobs[:SHOWN]:
        would = job["rejected"] or ", ".join(job["decided_placement"])
        table.add_row(job["job"], time(job["wait_s"]), time(job["wait_decided_s"]), ", ".join(job["placement"]), would)
    print_table(table)
    if len(jobs) > SHOWN:
        print_line(f"{len(jobs) - SHOWN:,} more: --json lists them")


def _wait(job: RecordedJob, until: int | None) -> float | None:

    return None if job.submitted is None or until is None else max(until - job.submitted, 0) / SECOND
