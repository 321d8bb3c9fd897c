"""Compiled loops over arrays, one subpackage per kind of problem.

List scheduling on racks with memory pools, list scheduling on shared nodes, batch placement, task dispatch, minimum-cost flow.

Kernels read and write arrays only; they do not depend on jobs, machines or policies. The `state` modules, which define these
arrays, and `common.index` do not import Numba. All others do (`jit` documents the cache of compiled kernels), so an engine
imports them only when it starts a replay. A subpackage imports only itself and those listed in `jit.BUILDS_ON`: its compiled
kernels stay valid until one of these changes.
"""
