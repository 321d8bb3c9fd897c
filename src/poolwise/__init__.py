"""Poolwise plans, simulates and runs workloads on disaggregated datacenters.

The functions cover what the command line does: `read` or `generate` jobs, `simulate` a schedule, `compare` runs, `run` a study,
`plan` a purchase, `forecast` start times and `place` a batch. `poolwise.policies`, `poolwise.schedulers` and
`poolwise.performance` have the shipped classes, and `poolwise.interfaces` what a policy of your own derives from. Names are
imported when they are first used.
"""

from poolwise.lazy_exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
