"""Recalculation of priorities that are a sum: age, fair shares by usage that decays, and terms that never change.

Equals `policies.order.multifactor`, operation by operation.
"""

from __future__ import annotations

import math

from poolwise.arrays import IntArray
from poolwise.kernels.common.formula import Formula
from poolwise.kernels.common.state import Now, Order, QueueArrays, RunArrays
from poolwise.kernels.jit import inlined, step
from poolwise.quantities import SECOND


@step
def recalculate(submit: IntArray, order: Order, queue: QueueArrays, runs: RunArrays, now: Now, formula: Formula) -> bool:
    """Write the keys of the waiting jobs and of those that arrive before the next recalculation, and its time.

    Return False, and write nothing else, if the level fair shares have to be ranked first.
    """
    rules = formula.rules
    last = (now.time - rules.first) // rules.period * rules.period + rules.first
    if rules.shares:
        _count_usage(last, runs, now, formula)
        _compare_shares(formula)
        if not _ranking_holds(formula):
            return False
    following = last + rules.period
    for k in range(now.waiting):
        job = queue.job[k]
        order.key[job] = -_priority(job, last, submit, formula)
    job = now.next
    while job < submit.size and submit[job] < following:
        order.key[job] = -_priority(job, last, submit, formula)
        job += 1
    now.renewal, now.settled = following, 0
    return True


@inlined
def _priority(job: int, last: int, submit: IntArray, formula: Formula) -> float:
    """Return the priority of a job as of a recalculation."""
    rules = formula.rules
    waited = max(float(last // SECOND) - float(submit[job] // SECOND), 0.0)
    total = min(waited / rules.max_age, 1.0) * rules.age
    if rules.shares:
        total += formula.factor[formula.user[job] + 1]
    for term in range(formula.added.shape[0]):
        total += formula.added[term, job]
    for term in range(formula.subtracted.shape[0]):
        total -= formula.subtracted[term, job]
    return math.floor(min(max(total, 1.0), rules.most))


@step
def _count_usage(last: int, runs: RunArrays, now: Now, formula: Formula) -> None:
    """Count the usage up to a recalculation, period by period."""
    rules, status, active = formula.rules, formula.status, formula.active
    for run in range(status.started, now.started):
        at = status.active
        while at > 0 and runs.job[active[at - 1]] > runs.job[run]:
            active[at] = active[at - 1]
            at -= 1
        active[at] = run
        status.active += 1
    status.started = now.started
    while status.usage_at < last:
        _count_period(status.usage_at, status.usage_at + rules.period, runs, formula)
        status.usage_at += rules.period
    size = 0
    for k in range(status.active):
        if runs.end[active[k]] >= last:
            active[size] = active[k]
            size += 1
    status.active = size


@step
def _count_period(since: int, until: int, runs: RunArrays, formula: Formula) -> None:
    """Decay the usage over a period, and add the usage of the runs that last beyond its end."""
    usage, charged = formula.usage, formula.charged
    for k in range(usage.size):
        usage[k] *= formula.rules.decay
        charged[k] = 0.0
    for k in range(formula.status.active):
        run = formula.active[k]
        user = formula.user[runs.job[run]]
        if runs.start[run] < until and runs.end[run] >= until and user >= 0:
            seconds = until // SECOND - max(runs.start[run], since) // SECOND
            charged[user] += float(seconds) * formula.remains[seconds] * formula.billing[runs.job[run]]
    for k in range(formula.upward.size):
        charged[formula.parent[formula.upward[k]]] += charged[formula.upward[k]]
    for k in range(usage.size):
        usage[k] += charged[k]


@step
def _compare_shares(formula: Formula) -> None:
    """Write the level fair shares: shares over usage, both relative to the siblings."""
    parent, share, usage = formula.parent, formula.share, formula.usage
    for k in range(usage.size):
        value = math.inf
        if parent[k] >= 0 and share[k] == 0.0:
            value = 0.0
        elif parent[k] >= 0 and usage[parent[k]] != 0.0:
            used = usage[k] / usage[parent[k]]
            if used != 0.0:
                value = share[k] / used
        formula.level[k] = value


@inlined
def _ranking_holds(formula: Formula) -> bool:
    """Return whether the level fair shares are still in the order of the last ranking."""
    for k in range(formula.status.pairs):
        before, behind = formula.level[formula.before[k]], formula.level[formula.behind[k]]
        if (before > behind) != formula.leads[k] or before < behind:
            return False
    return bool(formula.status.pairs >= 0)
