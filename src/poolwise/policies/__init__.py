"""Shipped policies: queue orders, backfills, placements, admissions, preemption, and cost models of flow scheduling.

`from poolwise.policies import FM` imports a class by its name. Code inside Poolwise imports each class from its own module.
"""

from poolwise.lazy_exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
