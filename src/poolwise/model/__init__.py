"""Plain data: machine, workload, queue, snapshot, placement, decisions, events. No policy lives here."""

from poolwise.model.decision import Decision, Plan, Reject, Start, Stop, Wait
from poolwise.model.event import Arrival, CapacityChanged, Changes, Ended, Event, EventBatch, Outcome, Started, Wake
from poolwise.model.fabric import Fabric
from poolwise.model.machine import Kind, Machine
from poolwise.model.placement import Placement, Refusal
from poolwise.model.queue import Queue
from poolwise.model.run import Run
from poolwise.model.schedule import Schedule
from poolwise.model.snapshot import Snapshot
from poolwise.model.workload import Job, Workload

__all__ = [
    "Arrival",
    "CapacityChanged",
    "Changes",
    "Decision",
    "Ended",
    "Event",
    "EventBatch",
    "Fabric",
    "Job",
    "Kind",
    "Machine",
    "Outcome",
    "Placement",
    "Plan",
    "Queue",
    "Refusal",
    "Reject",
    "Run",
    "Schedule",
    "Snapshot",
    "Start",
    "Started",
    "Stop",
    "Wait",
    "Wake",
    "Workload",
]
