# The code of this baseline never changes, so that ratios of different days are comparable: not formatted, not linted.
# fmt: off
# ruff: noqa
"""Naive baseline: rigid jobs on racks with memory pools, with the semantics of specs/memory-pools.md and no optimizations.

It sorts the whole queue in every pass and copies state freely. It is an oracle (the source of published/pool_golden.csv) and the
"naive Python" of benchmark ratios. Times are integer nanoseconds, memory integer MiB.

    python naive_pools.py JOBS.csv --racks 4 --nodes 16 --pool 524288 --local 65536 --order fm --backfill easy --scope rack
"""

import argparse
import csv
import json
import math
import sys
import time

INTRA = [0.103935594, 1.37285957, 1.37771886, 1.83561765, 4.67776163, 4.83442012, 5.87674881, 13.7825116, 30.6614957, 106.645952, 166.840426]
INTER = [0.75210565, 1.96119392, 3.59254798, 5.37873038, 11.20019087, 12.49451142, 17.857027, 25.00913367, 52.94264714, 127.45616256, 318.95031442]


def quantile(points, u):
    """Return the slowdown (fraction) at u in [0, 1): the empirical quantile; each job behaves like one of the measured kernels."""
    return points[int(u * 11)] / 100


class Job:
    def __init__(self, ident, submit_ns, nodes, duration_ns, memory_mib, u, local_mib):
        self.id, self.submit, self.n, self.d, self.mem, self.u = ident, submit_ns, nodes, duration_ns, memory_mib, u
        self.rm = max(0, memory_mib - local_mib)
        self.ratio = self.rm / memory_mib if self.rm else 0.0
        self.overload = memory_mib / local_mib if self.rm else 1.0
        self.log_n, self.log_r = math.log10(nodes), math.log10(duration_ns / 1e9)
        self.s = max(1.0, submit_ns / 1e9)
        self.log_s = math.log10(self.s)


class State:
    """Free nodes and free pool memory per rack."""

    def __init__(self, free, pool):
        self.free, self.pool = list(free), list(pool)

    def copy(self):
        return State(self.free, self.pool)

    def add(self, placement, sign):
        nodes, memory = placement
        for r in range(len(self.free)):
            self.free[r] += sign * nodes[r]
            self.pool[r] += sign * memory[r]


def place(job, state, scope):
    """Return (nodes, pool MiB) per rack, or None: the rack with the most free nodes that fits the job, else racks by offer."""
    racks = range(len(state.free))
    if scope == "rack" and job.rm:
        offer = [min(state.free[r], state.pool[r] // job.rm) for r in racks]
    else:
        offer = list(state.free)
        if job.rm and sum(state.pool) < job.n * job.rm:
            return None
    nodes = [0] * len(offer)
    single = [r for r in racks if offer[r] >= job.n]
    if single:
        nodes[min(single, key=lambda r: (-state.free[r], r))] = job.n
    else:
        left = job.n
        for r in sorted(racks, key=lambda r: (-offer[r], -state.free[r], r)):
            nodes[r] = min(left, offer[r])
            left -= nodes[r]
        if left:
            return None
    memory = [n * job.rm for n in nodes]
    if scope == "system" and job.rm:
        own = [min(memory[r], state.pool[r]) for r in racks]
        rest = sum(memory) - sum(own)
        for r in sorted(racks, key=lambda r: (-(state.pool[r] - own[r]), r)):
            take = min(rest, state.pool[r] - own[r])
            own[r] += take
            rest -= take
        memory = own
    return nodes, memory


def runtime(job, placement, scope):
    """Return the runtime in ns. In scope system, memory of other racks costs 280 ns; the slowest nodes determine the result."""
    if not job.rm:
        return job.d
    near, far = quantile(INTRA, job.u), quantile(INTER, job.u)
    factor = near
    if scope == "system":
        nodes, memory = placement
        inside = min(min(m, n * job.rm) / (n * job.rm) for n, m in zip(nodes, memory) if n)
        factor = inside * near + (1 - inside) * far
    return job.d + math.ceil(job.d * (factor * job.ratio))


def priority(order, job, now):
    w, r, n = (now - job.submit) / 1e9, job.d / 1e9, job.n
    if order == "fcfs":
        return -job.s
    if order == "sjf":
        return -r
    if order == "wfp3":
        x = w / r
        return x * x * x * n
    if order == "f1":
        return -(job.log_r * n + 870 * job.log_s)
    if order == "fair":
        return w / r
    if order == "fm":
        return w / ((job.log_n + 1) * r * job.overload)
    raise ValueError(order)


def simulate(jobs, racks, nodes, pool, order, backfill, scope, place=place, runtime=runtime, empty=None):
    """Return start and end (ns) by job id, without jobs that can never fit; other types of nodes need other functions."""
    empty = empty or State([nodes] * racks, [pool] * racks)
    jobs = sorted((j for j in jobs if place(j, empty, scope)), key=lambda j: (j.submit, j.id))
    state, queue, running, done, i = empty.copy(), [], [], {}, 0
    while i < len(jobs) or running:
        now = min([jobs[i].submit] if i < len(jobs) else [], default=None)
        first_end = min((r[0] for r in running), default=None)
        now = min(t for t in (now, first_end) if t is not None)
        for r in [r for r in running if r[0] == now]:
            running.remove(r)
            state.add(r[1], +1)
        while i < len(jobs) and jobs[i].submit == now:
            queue.append(jobs[i])
            i += 1

        def start(job, placement):
            end = now + runtime(job, placement, scope)
            state.add(placement, -1)
            running.append((end, placement))
            done[job.id] = (now, end)

        queue.sort(key=lambda j: (-priority(order, j, now), j.submit, j.id))
        if backfill == "conservative":
            queue = conservative(queue, state, running, now, scope, start, place, runtime)
            continue
        while queue and (placement := place(queue[0], state, scope)):
            start(queue.pop(0), placement)
        if backfill == "none" or len(queue) < 2:
            continue
        head, then = queue[0], state.copy()
        shadow = now
        for end in sorted({r[0] for r in running}):
            for r in running:
                if r[0] == end:
                    then.add(r[1], +1)
            shadow = end
            if place(head, then, scope):
                break
        waiting = [head]
        for job in queue[1:]:
            placement = place(job, state, scope)
            if placement:
                if now + runtime(job, placement, scope) <= shadow:
                    start(job, placement)
                    continue
                if backfill == "easy":
                    then.add(placement, -1)
                    if min(then.free) >= 0 and min(then.pool) >= 0 and place(head, then, scope):
                        start(job, placement)
                        continue
                    then.add(placement, +1)
            waiting.append(job)
        queue = waiting
    return done


def conservative(queue, state, running, now, scope, start, place, runtime):
    """Give every waiting job, in priority order, the earliest interval in which it fits next to all earlier reservations."""
    times = sorted({now, *(r[0] for r in running)})
    profile = [state.copy() for _ in times]  # availability from times[k] on
    for k, t in enumerate(times):
        for r in running:
            if r[0] <= t:
                profile[k].add(r[1], +1)
    waiting = []
    for job in queue:
        for k, t in enumerate(times):
            placement, length = None, job.d
            while True:  # the runtime depends on the placement, the placement on the interval
                span = [profile[m] for m in range(k, len(times)) if times[m] < t + length]
                least = State([min(p.free[r] for p in span) for r in range(len(state.free))], [min(p.pool[r] for p in span) for r in range(len(state.pool))])
                placement = place(job, least, scope)
                if not placement or runtime(job, placement, scope) <= length:
                    break
                length = runtime(job, placement, scope)
            if placement:
                break
        end = t + length
        if end not in times:
            m = max(m for m in range(len(times)) if times[m] < end)
            times.insert(m + 1, end)
            profile.insert(m + 1, profile[m].copy())
        for m in range(k, len(times)):
            if times[m] < end:
                profile[m].add(placement, -1)
        if t == now:
            start(job, placement)
        else:
            waiting.append(job)
    return waiting


def read(path, local_mib):
    with open(path, newline="") as f:
        return [Job(int(r["id"]), int(r["submit_ns"]), int(r["nodes"]), int(r["duration_ns"]), int(r["memory_mib"]), float(r["u"]), local_mib) for r in csv.DictReader(f)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("jobs")
    p.add_argument("--racks", type=int, default=4)
    p.add_argument("--nodes", type=int, default=16)
    p.add_argument("--pool", type=int, default=524288, help="MiB per rack")
    p.add_argument("--local", type=int, default=65536, help="MiB per node")
    p.add_argument("--order", default="fm")
    p.add_argument("--backfill", default="easy", choices=["none", "easy", "easy_no_extra", "conservative"])
    p.add_argument("--scope", default="rack", choices=["rack", "system"])
    a = p.parse_args()
    jobs = read(a.jobs, a.local)
    t = time.perf_counter()
    done = simulate(jobs, a.racks, a.nodes, a.pool, a.order, a.backfill, a.scope)
    wall = time.perf_counter() - t
    wait = [done[j.id][0] - j.submit for j in jobs if j.id in done]
    json.dump({"jobs": len(done), "rejected": len(jobs) - len(done), "mean_wait_s": sum(wait) / len(wait) / 1e9, "wall_s": wall}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
