"""Interfaces of Poolwise, one file each, and the data classes that their methods get and return.

A platform yields events and commits decisions. The dispatcher of a scheduler decides from the queue and a snapshot. A list
scheduler consists of a queue order, a backfill, a placement and an admission policy, and may have a preemption policy. A
performance model states how long a run takes at its placement. All of them are small frozen dataclasses whose `__init__` only
stores settings, so that they can be compared, pickled, swept and named in a study file.
"""

from poolwise.errors import InputError, PolicyError
from poolwise.interfaces.admission import AdmissionPolicy
from poolwise.interfaces.backfill import BackfillPolicy
from poolwise.interfaces.capped import CappedOrder
from poolwise.interfaces.order import AffineOrder, AgingOrder, OrderKind, PreparedOrder, QueuePolicy, RecalculatedOrder
from poolwise.interfaces.performance import PerformanceModel
from poolwise.interfaces.placement import PlacementPolicy
from poolwise.interfaces.platform import Platform
from poolwise.interfaces.preemption import PreemptionPolicy
from poolwise.interfaces.registration import register
from poolwise.interfaces.scheduler import Dispatcher, ListRule, Scheduler
from poolwise.interfaces.scheduling_pass import SchedulingPass
from poolwise.model import (
    Changes,
    Decisions,
    Fetch,
    Job,
    JobTable,
    Kind,
    Machine,
    Placement,
    Queue,
    Reason,
    Refusal,
    Reject,
    Resize,
    Run,
    Snapshot,
    Start,
    Stop,
    Wait,
    WaitCause,
)
from poolwise.model.priority_formula import PriorityFormula, ShareRanking, UsageShares
from poolwise.model.rules import BackfillRule, FixedSlowdown, NodeRule, PassTimes, RackRule

__all__ = [
    "AdmissionPolicy",
    "AffineOrder",
    "AgingOrder",
    "BackfillPolicy",
    "BackfillRule",
    "CappedOrder",
    "Changes",
    "Decisions",
    "Dispatcher",
    "Fetch",
    "FixedSlowdown",
    "InputError",
    "Job",
    "JobTable",
    "Kind",
    "ListRule",
    "Machine",
    "NodeRule",
    "OrderKind",
    "PassTimes",
    "PerformanceModel",
    "Placement",
    "PlacementPolicy",
    "Platform",
    "PolicyError",
    "PreemptionPolicy",
    "PreparedOrder",
    "PriorityFormula",
    "Queue",
    "QueuePolicy",
    "RackRule",
    "Reason",
    "RecalculatedOrder",
    "Refusal",
    "Reject",
    "Resize",
    "Run",
    "Scheduler",
    "SchedulingPass",
    "ShareRanking",
    "Snapshot",
    "Start",
    "Stop",
    "UsageShares",
    "Wait",
    "WaitCause",
    "register",
]
