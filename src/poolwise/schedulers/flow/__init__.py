"""Flow scheduling: who starts where is a minimum-cost flow, one for nodes and one for each kind of device."""

from poolwise.schedulers.flow.scheduler import Firmament, FlowScheduler

__all__ = ["Firmament", "FlowScheduler"]
