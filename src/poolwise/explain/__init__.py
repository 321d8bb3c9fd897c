"""Why a job waited: the run is replayed, and at each pass that passes the job over the rule that held it back is named."""

from poolwise.explain.explanation import Episode, Explanation
from poolwise.explain.memory import MemoryStretch, memory_stretches
from poolwise.explain.wait import explain_wait
from poolwise.model.reason import Reason, Rule

__all__ = ["Episode", "Explanation", "MemoryStretch", "Reason", "Rule", "explain_wait", "memory_stretches"]
