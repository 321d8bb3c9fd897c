"""Reasons why a job waited in one scheduling pass."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from poolwise.model.placement import Refusal
from poolwise.short_repr import short_repr


class WaitCause(StrEnum):
    """Cause for which a job waited in a scheduling pass.

    Examples
    --------
    >>> from poolwise.interfaces import WaitCause
    >>> WaitCause("reservation") is WaitCause.RESERVATION
    True
    """

    SHORT = "short"  # a resource was short
    ORDER = "order"  # it fits, but the head of the queue does not, and nothing is backfilled
    RESERVATION = "reservation"  # it fits, but would delay a reservation
    LIMIT = "limit"  # a limit of its quality of service is reached
    WARM_UP = "warm-up"  # other jobs fill the machine first
    POSTPONED = "postponed"  # it fits, but the scheduler waits for a better placement or time
    ROUND = "round"  # the scheduler plans at intervals
    PREDECESSORS = "predecessors"  # jobs that it waits for have not finished
    ASIDE = "aside"  # the cluster lacks a resource that the scheduler does not model
    UNREPORTED = "unreported"  # the scheduler gives no reason


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why a job waited in one scheduling pass.

    Attributes
    ----------
    cause : what held it back
    text : the reason in words; it says whether the need is the job's own or the blocker's
    resource, needed, free : the resource that was short and its amounts, base units; "" if none was. For the cause "order", the
        head of the queue lacks it; for "reservation", it does not suffice for both jobs at once
    nodes, fitting : number of nodes that must each have the needed amount, and number of nodes that have it, as in `Refusal`
    blocker_needs : whether `needed` and `nodes` state the need of the blocker instead of the job's own
    blocker : row of the job that blocked it, None without one
    reserved : time (ns) at which the blocker's reservation begins, None without one
    ahead : number of waiting jobs of higher priority

    Examples
    --------
    >>> from poolwise.interfaces import Reason, Refusal, WaitCause
    >>> reason = Reason.of(WaitCause.SHORT, "it needs more nodes", Refusal("not enough nodes", "nodes", 8, 3))
    >>> reason.resource, reason.needed - reason.free
    ('nodes', 5)
    """

    __repr__ = short_repr

    cause: WaitCause
    text: str
    resource: str = ""
    needed: int = 0
    free: int = 0
    blocker: int | None = None
    reserved: int | None = None
    ahead: int = 0
    nodes: int = 0
    fitting: int = 0
    blocker_needs: bool = False

    @classmethod
    def of(
        cls,
        cause: WaitCause,
        text: str,
        refusal: Refusal | None = None,
        *,
        blocker: int | None = None,
        reserved: int | None = None,
        ahead: int = 0,
        blocker_needs: bool = False,
    ) -> Reason:
        """Build a reason with the amounts of a refusal: that of the blocker if `blocker_needs`, else that of the job."""
        short = refusal if refusal is not None else Refusal("")
        amounts = short.resource, short.needed, short.free
        return cls(cause, text, *amounts, blocker, reserved, ahead, short.nodes, short.fitting, blocker_needs)
