"""GPUs of an imported Slurm cluster as gres.conf describes them: their types, and contradictions with slurm.conf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from poolwise.quantities import format_count
from poolwise.slurm import hostlist
from poolwise.slurm.cluster import NodeSize
from poolwise.slurm.gres import GresLine, gpu_lines, read_gres


def with_gres(
    sizes: Mapping[str, NodeSize], path: Path, types: Mapping[str, tuple[str, ...]], leave_out: Callable[[str], None]
) -> dict[str, NodeSize]:
    """Return node name -> size, with the GPU types in gres.conf as features if slurm.conf names none.

    As in Slurm, slurm.conf determines the number of GPUs. `types` are the GPU types in slurm.conf, by node. `leave_out`
    receives a sentence for each contradiction and for each setting that is left out.
    """
    lines, typed, problems = read_gres(path), dict(sizes), dict[str, list[str]]()
    for host, size in sizes.items():
        mine = gpu_lines(lines, host)
        if problem := _contradiction(size, mine, types.get(host, ())):
            problems.setdefault(problem, []).append(host)
        elif mine and not types.get(host):
            named = {line.type for line in mine} - {""}
            typed[host] = replace(size, features=tuple(sorted({*size.features, *named})))
    for problem, hosts in problems.items():
        leave_out(problem.replace("NODES", hostlist.compress(hosts), 1))
    for line in lines:
        if line.detects.lower() not in ("", "off"):
            leave_out(f"{line.file.name}:{line.line}: AutoDetect={line.detects} is left out: GPUs are those of slurm.conf")
        elif line.name not in ("", "gpu"):
            leave_out(f"{line.file.name}:{line.line}: the resource {line.name} is left out: jobs do not wait for it")
        elif unknown := sorted((line.nodes or frozenset()) - {*sizes}):
            leave_out(f"{line.file.name}:{line.line}: nodes {hostlist.compress(unknown)} are not defined")
    return typed


def _contradiction(size: NodeSize, mine: list[GresLine], types: tuple[str, ...]) -> str:
    """Return how the lines of a node contradict slurm.conf; empty if they do not. NODES in the text stands for node names."""
    if not mine:
        return ""
    by_file = groupby(mine, lambda line: line.file.name)
    place = ", ".join(f"{name}:{','.join(str(line.line) for line in lines)}" for name, lines in by_file)
    count = sum(line.count for line in mine)
    gpus = f"{format_count(count, 'GPU')} of NODES"
    if not size.gpus:
        return f"{place}: {gpus} {'is' if count == 1 else 'are'} left out: {size.source} has no Gres=gpu"
    if count != size.gpus:
        verbs = "differs" if count == 1 else "differ", "is" if size.gpus == 1 else "are"
        return f"{place}: {gpus} {verbs[0]} from {size.gpus} in {size.source}, which {verbs[1]} used"
    named = {line.type for line in mine} - {""}
    if types and named and not {*types} <= named:
        return f"{place}: types {', '.join(sorted(named))} of NODES differ from {', '.join(types)} in {size.source}"
    return ""
