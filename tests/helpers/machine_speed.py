"""Speed of this machine, which scales every time limit of the tests."""

from poolwise.engines import compiled_engine


def slowness() -> float:
    """Return the time of a fixed loop as a multiple of that on the reference computer, at least 1."""
    return max(1.0, compiled_engine.slowness())


def measured_slowness() -> float:
    """Measure the same multiple again, for a test that measures times itself: the speed of a shared machine changes."""
    return compiled_engine.slowness.__wrapped__()
