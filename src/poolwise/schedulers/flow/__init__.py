"""Flow scheduling: minimum-cost flows decide which jobs start where, one for nodes and one for each kind of device."""

from poolwise.schedulers.flow.scheduler import Firmament, FlowScheduler

__all__ = ["Firmament", "FlowScheduler"]
