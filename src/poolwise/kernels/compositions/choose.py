"""Choice of a node and devices for a workload, by each policy of composed devices.

Each function returns whether it found a placement, and stores it in `now.node`, `now.joined`, `now.count` and `now.place`.
"""

from __future__ import annotations

import math

from poolwise.kernels.compositions.progress import is_safe, time_on
from poolwise.kernels.compositions.state import (
    AWARE,
    FIRST_FIT,
    MAXIMIZE,
    CompositionState,
    DeviceArrays,
    NeedArrays,
)
from poolwise.kernels.jit import step


@step
def choose_placement(shape: int, deadline: int, late: bool, state: CompositionState) -> bool:
    """Choose a placement by the policy."""
    rules, now = state.rules, state.now
    if rules.policy == FIRST_FIT:
        return bool(_first_fit(shape, state))
    maximize = rules.policy == MAXIMIZE
    if rules.policy == AWARE:
        busy, full = now.bandwidth / rules.bandwidth_installed, now.storage / rules.storage_installed
        low = busy <= 0.5 and full <= 0.5
        maximize = low or ((busy >= 0.7 or rules.capacity_alone == 1) and full <= 0.7)
    if maximize:
        return bool(_maximize(shape, deadline, late, state))
    return bool(_minimize(shape, deadline, late, state))


@step
def _keep(node: int, joined: int, count: int, place: int, state: CompositionState) -> bool:
    """Store a placement; return whether there is one."""
    now = state.now
    now.node, now.joined, now.count, now.place = node, joined, count, place
    return node >= 0


@step
def _first_node(cores: int, state: CompositionState) -> int:
    """Return the lowest node with enough free cores, -1 if there is none."""
    for node in range(state.cores.size):
        if state.cores[node] >= cores:
            return node
    return -1


@step
def _emptiest_node(cores: int, state: CompositionState) -> int:
    """Return the node with the greatest share of free cores among those with room, the lowest on ties, -1 if there is none."""
    best, most = -1, -1.0
    for node in range(state.cores.size):
        share = state.cores[node] / max(state.devices.installed[node], 1)
        if state.cores[node] >= cores and share > most:
            best, most = node, share
    return best


@step
def _has_room(lead: int, shape: int, state: CompositionState) -> bool:
    """Return whether a composition in use has room for a workload and is shared only by workloads of the same kind."""
    shapes, compositions = state.shapes, state.compositions
    if compositions.kind[lead] != shapes.kind[shape] or state.cores[compositions.node[lead]] < shapes.cores[shape]:
        return False
    if compositions.storage[lead] < shapes.storage[shape]:
        return False
    if shapes.most[shape] == 0:
        return bool(compositions.bandwidth[lead] >= shapes.bandwidth[shape])
    return bool(compositions.sharers[lead] < shapes.most[shape])


@step
def _joinable_time(lead: int, shape: int, deadline: int, state: CompositionState) -> int:
    """Return the time (ns) that a workload takes on a composition in use; -1 if it has no room or would miss its deadline."""
    compositions = state.compositions
    if compositions.lead[lead] != lead or not _has_room(lead, shape, state):
        return -1
    time = time_on(shape, compositions.size[lead], compositions.sharers[lead] + 1, state.shapes)
    return time if state.now.time + time <= deadline else -1


@step
def _fewest(place: int, shape: int, devices: DeviceArrays, shapes: NeedArrays) -> int:
    """Return the minimum number of free devices of a location that cover a need; 0 if all of them together do not."""
    bandwidth, storage = shapes.bandwidth[shape], shapes.storage[shape]
    count = 1
    if bandwidth > 0:
        if devices.bandwidth[place] == 0:
            return 0
        count = max(count, -(-bandwidth // devices.bandwidth[place]))
    if storage > 0:
        if devices.storage[place] == 0:
            return 0
        count = max(count, -(-storage // devices.storage[place]))
    return count if count <= devices.free[place] else 0


@step
def _first_fit(shape: int, state: CompositionState) -> bool:
    """Choose the first device with room: a free one or, with `share`, one in use."""
    shapes, devices, compositions = state.shapes, state.devices, state.compositions
    first = _first_node(shapes.cores[shape], state)
    if first < 0 or (shapes.bandwidth[shape] == 0 and shapes.storage[shape] == 0):
        return _keep(first, -1, 0, 0, state)
    for device in range(devices.place.size):
        place, lead = devices.place[device], compositions.lead[device]
        if lead >= 0:
            roomy = state.rules.share == 1 and lead == device and compositions.size[lead] == 1
            if roomy and compositions.bandwidth[lead] >= shapes.bandwidth[shape] and _has_room(lead, shape, state):
                return _keep(compositions.node[lead], lead, 0, 0, state)
            continue
        node = first if devices.inside[place] < 0 else devices.inside[place]
        if state.cores[node] >= shapes.cores[shape] and _fewest(place, shape, devices, shapes) == 1:
            return _keep(node, -1, 1, place, state)
    return False


@step
def _maximize(shape: int, deadline: int, late: bool, state: CompositionState) -> bool:
    """Join the composition that outlives the workload longest; otherwise compose devices while each one helps."""
    shapes, compositions, runs, rules = state.shapes, state.compositions, state.runs, state.rules
    first, time = _first_node(shapes.cores[shape], state), state.now.time
    if first < 0 or (shapes.bandwidth[shape] == 0 and shapes.storage[shape] == 0):
        return _keep(first, -1, 0, 0, state)
    best, least, least_fitness, its_time = -1, 0, 0.0, 0
    for lead in range(compositions.lead.size if rules.late_maximize == 1 or not late else 0):
        own = _joinable_time(lead, shape, deadline, state)
        if own < 0:
            continue
        end, run = 0, compositions.first[lead]
        while run >= 0:
            end = max(end, runs.seen_end[run])
            run = runs.next[run]
        over, fitness = own - (end - time), _fitness(lead, shape, state)
        if (best < 0 or over < least or (over == least and fitness < least_fitness)) and is_safe(lead, state):
            best, least, least_fitness, its_time = lead, over, fitness, own
    if best >= 0 and not (rules.extends == 1 and least > rules.max_extension * its_time):
        return _keep(compositions.node[best], best, 0, 0, state)
    if _fastest(shape, deadline, late, first, state):
        return True
    return best >= 0 and _keep(compositions.node[best], best, 0, 0, state)


@step
def _fitness(lead: int, shape: int, state: CompositionState) -> float:
    """Return the room that a workload would leave on a composition (equation 1)."""
    rules = state.rules
    bandwidth = state.compositions.bandwidth[lead] - state.shapes.bandwidth[shape]
    storage = state.compositions.storage[lead] - state.shapes.storage[shape]
    if rules.fitness_as_printed == 1:
        return float(bandwidth + storage / rules.gigabyte)
    return float(max(0, bandwidth) / rules.bandwidth_unit + max(0, storage) / rules.storage_unit)


@step
def _fastest(shape: int, deadline: int, late: bool, first: int, state: CompositionState) -> bool:
    """Compose free devices of the best location: deadline met first, then least time, fewest devices and lowest index."""
    shapes, devices = state.shapes, state.devices
    placed, best_late, best_time, best_count = False, False, 0, 0
    for place in range(devices.inside.size):
        node = first if devices.inside[place] < 0 else devices.inside[place]
        if state.cores[node] < shapes.cores[shape]:
            continue
        count = _helpful(place, shape, deadline, late, state)
        if count == 0:
            continue
        time = time_on(shape, count, 1, shapes)
        misses = late or state.now.time + time > deadline
        if misses:
            time = 0
        better = not placed or (not misses and best_late)
        if placed and misses == best_late:
            better = time < best_time or (time == best_time and count < best_count)
        if better:
            placed, best_late, best_time, best_count = _keep(node, -1, count, place, state), misses, time, count
    return placed


@step
def _helpful(place: int, shape: int, deadline: int, late: bool, state: CompositionState) -> int:
    """Return how many free devices to compose: all that each reduce the time, or the fewest if too late; 0 if too few."""
    shapes, devices, rules, now = state.shapes, state.devices, state.rules, state.now.time
    fewest = _fewest(place, shape, devices, shapes)
    if fewest == 0 or late:
        return fewest
    size, peak = devices.bandwidth[place], shapes.peak[shape]
    if rules.each_parameter == 1:
        best, time = fewest, shapes.requested[shape]
        for limited in range(2):
            for count in range(fewest, devices.free[place] + 1):
                within = count == fewest or limited == 1 or count * size <= max(peak, shapes.bandwidth[shape])
                if within and time_on(shape, count, 1, shapes) < time:
                    best, time = count, time_on(shape, count, 1, shapes)
        return fewest if now + time > deadline else best
    best, time = fewest, time_on(shape, fewest, 1, shapes)
    for count in range(fewest + 1, devices.free[place] + 1):
        if rules.smallest == 1 and now + time <= deadline:
            break
        if count * size > peak or time_on(shape, count, 1, shapes) >= time:
            break
        best, time = count, time_on(shape, count, 1, shapes)
    return best if now + time <= deadline else fewest


@step
def _minimize(shape: int, deadline: int, late: bool, state: CompositionState) -> bool:
    """Join the composition of least alpha; otherwise compose the fewest devices, on the emptiest node."""
    shapes, devices, compositions, rules = state.shapes, state.devices, state.compositions, state.rules
    emptiest = _emptiest_node(shapes.cores[shape], state)
    if emptiest < 0 or (shapes.bandwidth[shape] == 0 and shapes.storage[shape] == 0):
        return _keep(emptiest, -1, 0, 0, state)
    best, least = -1, 0.0
    for lead in range(compositions.lead.size if rules.late_minimize == 1 or not late else 0):
        if _joinable_time(lead, shape, deadline, state) < 0:
            continue
        alpha = _alpha(lead, shape, state)
        if (best < 0 or alpha < least) and is_safe(lead, state):
            best, least = lead, alpha
    if best >= 0:
        return _keep(compositions.node[best], best, 0, 0, state)
    placed, best_count, best_beta = False, 0, 0.0
    for place in range(devices.inside.size):
        node = emptiest if devices.inside[place] < 0 else devices.inside[place]
        count = _fewest(place, shape, devices, shapes)
        if state.cores[node] < shapes.cores[shape] or count == 0:
            continue
        beta = 1 - state.cores[node] / max(devices.installed[node], 1)
        if not placed or count < best_count or (count == best_count and beta < best_beta):
            placed, best_count, best_beta = _keep(node, -1, count, place, state), count, beta
    return placed


@step
def _alpha(lead: int, shape: int, state: CompositionState) -> float:
    """Return alpha of a workload on a composition (equation 2)."""
    shapes, compositions = state.shapes, state.compositions
    bandwidth, storage, cores = shapes.bandwidth[shape], shapes.storage[shape], shapes.cores[shape]
    free_bandwidth, free_storage = compositions.bandwidth[lead], compositions.storage[lead]
    free_cores = state.cores[compositions.node[lead]]
    if state.rules.alpha_as_printed == 1:
        if free_bandwidth <= 0 or free_storage <= 0 or cores <= 0:
            return math.inf
        return float((1 - (bandwidth / free_bandwidth + storage / free_storage)) / (cores / free_cores))
    if cores == 0:
        return math.inf
    used = (_used(bandwidth, free_bandwidth) + _used(storage, free_storage)) / 2
    return float((1 - used) / (cores / free_cores))


@step
def _used(need: int, free: int) -> float:
    """Return the share of the free amount that a need takes, at most 1."""
    return need / max(free, need) if need > 0 else 0.0
