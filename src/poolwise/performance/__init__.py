"""Performance models: the run time of a job at its placement.

Each file registers one model under a name, and `from poolwise.performance import RemoteMemory` imports its class.
"""

from poolwise.lazy_exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
