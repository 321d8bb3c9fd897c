"""Compiled loops over arrays, one folder for each family.

List scheduling on racks with memory pools, batch placement, dispatch of tasks to units, minimum-cost flow.

Arrays in, arrays out: nothing here knows a job, a machine or a policy. Importing this package does not import Numba; its
modules do (`jit` says where compiled kernels are kept), so only an engine that is about to replay imports them. A family
imports nothing of another: its compiled kernels stay valid until one of its own files changes.
"""
