"""Schedulers: list, flow, greedy and batch scheduling, task dispatch, composed devices, and warm-up.

`from poolwise.schedulers import Dispatch` imports a class by its name.
"""

from poolwise.lazy_exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
