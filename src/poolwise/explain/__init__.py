"""Explanation of waits: a replay of the run determines what held the job back in each scheduling pass."""

from poolwise.explain.answer import wait_answer
from poolwise.explain.explanation import Episode, Explanation
from poolwise.explain.memory import MemoryStretch, memory_stretches
from poolwise.explain.wait import explain_wait
from poolwise.model.reason import Reason, WaitCause

__all__ = ["Episode", "Explanation", "MemoryStretch", "Reason", "WaitCause", "explain_wait", "memory_stretches", "wait_answer"]
