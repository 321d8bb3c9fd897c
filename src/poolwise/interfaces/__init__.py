"""Every interface of Poolwise, a file each. Read this first.

A platform yields events and commits plans; a scheduler's dispatcher turns the queue and a snapshot into a plan; a list
scheduler is put together from a queue order, a backfill and a placement policy; a performance model says how long a job
takes where it is placed. All of them are small frozen configurations: `__init__` only stores, so that they can be
compared, pickled, swept and named in a study file.
"""

from poolwise.interfaces.admission import AdmissionPolicy
from poolwise.interfaces.backfill import BackfillPolicy, backfill_reason
from poolwise.interfaces.capped import KIND_CLASSES, CappedOrder
from poolwise.interfaces.order import (
    EXTREME,
    AffineOrder,
    AgingOrder,
    OrderKind,
    PreparedOrder,
    QueuePolicy,
    RecalculatedOrder,
    checked_priorities,
    opened,
)
from poolwise.interfaces.performance import PerformanceModel, fixed_slowdown
from poolwise.interfaces.placement import PlacementPolicy
from poolwise.interfaces.platform import Platform
from poolwise.interfaces.scheduler import Dispatcher, ListRule, Scheduler, reason_of
from poolwise.interfaces.user_class import rule_of

__all__ = [
    "EXTREME",
    "KIND_CLASSES",
    "AdmissionPolicy",
    "AffineOrder",
    "AgingOrder",
    "BackfillPolicy",
    "CappedOrder",
    "Dispatcher",
    "ListRule",
    "OrderKind",
    "PerformanceModel",
    "PlacementPolicy",
    "Platform",
    "PreparedOrder",
    "QueuePolicy",
    "RecalculatedOrder",
    "Scheduler",
    "backfill_reason",
    "checked_priorities",
    "fixed_slowdown",
    "opened",
    "reason_of",
    "rule_of",
]
