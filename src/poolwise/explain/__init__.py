"""Explanations of waits: a replay of the run that names the rule holding a job back at each pass."""

from poolwise.explain.explanation import Episode, Explanation
from poolwise.explain.memory import MemoryStretch, memory_stretches
from poolwise.explain.wait import explain_wait
from poolwise.model.reason import Reason, Rule

__all__ = ["Episode", "Explanation", "MemoryStretch", "Reason", "Rule", "explain_wait", "memory_stretches"]
