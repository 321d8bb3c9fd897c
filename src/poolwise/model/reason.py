"""Why a job waited in one pass, as facts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from poolwise.model.placement import Refusal


class Rule(StrEnum):
    """What held a job back."""

    SHORT = "short"  # its placement was refused: a resource was short
    ORDER = "order"  # it fits, but the head of the queue does not, and nothing is backfilled
    RESERVATION = "reservation"  # it fits, but would be in the way of a reservation
    LIMIT = "limit"  # it may not be considered now: a limit of its quality of service is reached
    WARM_UP = "warm-up"  # other jobs fill the machine first
    POSTPONED = "postponed"  # there is room for it, but the scheduler waits for a better place or time
    ROUND = "round"  # the scheduler plans at intervals
    ASIDE = "aside"  # it asks for what no scheduler counts, and the cluster does not have that free
    UNSAID = "unsaid"  # a scheduler of your own that gives no reason


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job waited in one pass.

    Attributes
    ----------
    rule : what held it back
    text : the same in words, saying whose need it is
    resource, needed, free : what was short, in base units; "" where nothing was. Under the rule "order" it is what the head
        lacks, under "reservation" what is short for both at once
    blocker : row of the job that stood in the way, None where none did
    reserved : ns at which the blocker's reservation begins, None where it has none
    ahead : jobs of higher priority that were left waiting too
    """

    rule: Rule
    text: str
    resource: str = ""
    needed: int = 0
    free: int = 0
    blocker: int | None = None
    reserved: int | None = None
    ahead: int = 0

    @classmethod
    def of(
        cls,
        rule: Rule,
        text: str,
        refusal: Refusal | None = None,
        *,
        blocker: int | None = None,
        reserved: int | None = None,
        ahead: int = 0,
    ) -> Reason:
        """Build from the refusal that shows what was short."""
        short = refusal if refusal is not None else Refusal("")
        return cls(rule, text, short.resource, short.needed, short.free, blocker, reserved, ahead)
