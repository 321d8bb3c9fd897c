"""Compiled loops over arrays, one subpackage per kind of problem.

List scheduling on racks with memory pools, list scheduling on shared nodes, batch placement, task dispatch, minimum-cost flow.

Kernels read and write arrays only; they do not depend on jobs, machines or policies. Importing this package does not import
Numba; its modules do (`jit` documents the cache of compiled kernels), so only an engine that starts a replay imports them. A
subpackage imports only itself and those listed in `jit.BUILDS_ON`: its compiled kernels stay valid until one of these changes.
"""
