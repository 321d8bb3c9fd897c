"""Poolwise plans, simulates and runs workloads on disaggregated datacenters.

The functions correspond to the commands: `read` or `generate` jobs, `simulate` a schedule, `compare` runs, `run` a study,
`plan` a purchase, `forecast` start times and `place` a batch. `poolwise.policies`, `poolwise.schedulers` and
`poolwise.performance` contain the shipped classes, and `poolwise.interfaces` the base classes for your own policies. Names are
imported when they are first used.
"""

from poolwise.lazy_exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
