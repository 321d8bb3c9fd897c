"""Plain data: machine, workload, queue, snapshot, placement, decisions and events. No policy is defined here."""

from poolwise.model.continuation import Continuation
from poolwise.model.decision import CommitResult, Decision, Decisions, Reject, Resize, Start, Stop, Wait
from poolwise.model.event import (
    Arrival,
    CapacityChanged,
    Changes,
    Ended,
    Event,
    EventBatch,
    JobWithdrawn,
    Outcome,
    OwnerJoined,
    OwnerLeft,
    RunStalled,
    Started,
    Wakeup,
)
from poolwise.model.fabric import Fabric
from poolwise.model.failures import Failures, Outage
from poolwise.model.history import Accounting, RunHistory
from poolwise.model.job_table import Job, JobTable
from poolwise.model.kind import Kind
from poolwise.model.machine import Machine
from poolwise.model.machine_builder import MachineBuilder
from poolwise.model.memory_use import MemoryInUse, MemoryStep, MemoryUse, Stall
from poolwise.model.partition import AssociationLimits, Partition, QualityOfService, ReservedWindow
from poolwise.model.placement import Placement, Refusal
from poolwise.model.queue import Queue
from poolwise.model.reason import Reason, WaitCause
from poolwise.model.run import Fetch, Resized, Run
from poolwise.model.schedule import Schedule
from poolwise.model.snapshot import Snapshot
from poolwise.model.state import Initial, InitialRun, MachineState
from poolwise.model.task_graph import TaskGraph
from poolwise.model.workload import Workload

__all__ = [
    "Accounting",
    "Arrival",
    "AssociationLimits",
    "CapacityChanged",
    "Changes",
    "CommitResult",
    "Continuation",
    "Decision",
    "Decisions",
    "Ended",
    "Event",
    "EventBatch",
    "Fabric",
    "Failures",
    "Fetch",
    "Initial",
    "InitialRun",
    "Job",
    "JobTable",
    "JobWithdrawn",
    "Kind",
    "Machine",
    "MachineBuilder",
    "MachineState",
    "MemoryInUse",
    "MemoryStep",
    "MemoryUse",
    "Outage",
    "Outcome",
    "OwnerJoined",
    "OwnerLeft",
    "Partition",
    "Placement",
    "QualityOfService",
    "Queue",
    "Reason",
    "Refusal",
    "Reject",
    "ReservedWindow",
    "Resize",
    "Resized",
    "Run",
    "RunHistory",
    "RunStalled",
    "Schedule",
    "Snapshot",
    "Stall",
    "Start",
    "Started",
    "Stop",
    "TaskGraph",
    "Wait",
    "WaitCause",
    "Wakeup",
    "Workload",
]
