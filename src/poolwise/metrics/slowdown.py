"""Job waits, runtimes and bounded slowdowns.

Source: Li et al., Fair Memory, section II-C; specs of the memory pools, "Measurement".
"""

from __future__ import annotations

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.metrics.outcomes import Outcomes
from poolwise.quantities import SECOND

TAU_S = 10.0
"""Minimum runtime (s) in the bounded slowdown, so that very short jobs do not dominate the mean."""


def wait_s(outcomes: Outcomes) -> FloatArray:
    """Return the waits w = start - submit, (n_job,) seconds; NaN for jobs that did not finish."""
    return np.where(outcomes.finished, (outcomes.start - outcomes.submit) / SECOND, np.nan)


def runtime_s(outcomes: Outcomes) -> FloatArray:
    """Return the durations d = end - start, (n_job,) seconds; NaN for jobs that did not finish."""
    return np.where(outcomes.finished, (outcomes.end - outcomes.start) / SECOND, np.nan)


def bounded_slowdown(outcomes: Outcomes, tau_s: float = TAU_S) -> FloatArray:
    """Return max((w + d) / max(d, tau), 1) of each job, (n_job,); NaN for jobs that did not finish.

    d is the actual runtime, so a job that remote memory slows down can look better than one that is not slowed down. Read it
    together with `bounded_slowdown_local`.
    """
    runtime = runtime_s(outcomes)
    return _bounded(wait_s(outcomes) + runtime, runtime, tau_s)


def bounded_slowdown_local(outcomes: Outcomes, tau_s: float = TAU_S) -> FloatArray:
    """Return max((w + d) / max(r, tau), 1), (n_job,), with r the runtime in local memory; NaN for jobs that did not finish.

    Degradation by remote memory raises it just as waiting does.
    """
    return _bounded(wait_s(outcomes) + runtime_s(outcomes), outcomes.duration / SECOND, tau_s)


def _bounded(response_s: FloatArray, runtime_s: FloatArray, tau_s: float) -> FloatArray:
    # NaN passes through both maxima
    slowdown: FloatArray = np.maximum(response_s / np.maximum(runtime_s, tau_s), 1.0)
    return slowdown


def spread(values: FloatArray) -> dict[str, float]:
    """Return mean, median, 90th and 99th percentile of (n,) values, interpolated linearly; NaN without values."""
    if not len(values):
        return dict.fromkeys(("mean", "median", "p90", "p99"), float("nan"))
    median, p90, p99 = np.percentile(values, [50, 90, 99]).tolist()
    return {"mean": float(values.mean()), "median": median, "p90": p90, "p99": p99}
