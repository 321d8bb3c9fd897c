"""How the record of a live run is shown: what the scheduler would have done beside what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poolwise.live.record import LiveRecord, RecordedJob

SHOWN = 40
"""Jobs that the table shows."""


def record_content(record: LiveRecord) -> dict[str, Any]:
    """A record as one JSON object: times in seconds since 1970, waits in seconds."""
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


def print_record(record: LiveRecord) -> None:
    """Print the summary and the jobs whose waits differ most."""
    from rich.table import Table

    from poolwise.cli.console import out, warn
    from poolwise.cli.output import print_sentences
    from poolwise.units import format_time

    def time(value: float | None) -> str:
        return "" if value is None else format_time(value)

    content = record_content(record)
    summary = content["summary"]
    if record.torn:
        warn(f"the last line of the record was not written whole; its {record.torn} characters are left out")
    about = record.about
    lines = [f"{about.get('mode', 'live')} mode, {about.get('scheduler', 'scheduler unknown')}: {summary['jobs']:,} jobs"]
    if summary["started_and_decided"]:
        waits = time(summary["mean_wait_s"]), time(summary["mean_wait_decided_s"])
        lines.append(
            f"{summary['started_and_decided']:,} of them started and were decided on: mean wait {waits[0]}, by this "
            f"scheduler's decisions {waits[1]}; {summary['same_placement']:,} on what it would have chosen"
        )
    print_sentences(lines)
    table = Table("job", "waited", "decided after", "ran on", "would have run on", box=None, pad_edge=False)
    jobs = sorted(content["jobs"], key=lambda job: -abs((job["wait_s"] or 0.0) - (job["wait_decided_s"] or 0.0)))
    for job in jobs[:SHOWN]:
        would = job["rejected"] or ", ".join(job["decided_placement"])
        table.add_row(job["job"], time(job["wait_s"]), time(job["wait_decided_s"]), ", ".join(job["placement"]), would)
    out.print(table)
    if len(jobs) > SHOWN:
        print_sentences([f"{len(jobs) - SHOWN:,} more: --json has them"])


def _wait(job: RecordedJob, until: int | None) -> float | None:
    from poolwise.units import SECOND

    return None if job.submitted is None or until is None else max(until - job.submitted, 0) / SECOND
