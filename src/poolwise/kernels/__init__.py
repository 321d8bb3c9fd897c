"""Compiled loops over arrays, one folder a family.

List scheduling on racks with memory pools, batch placement, dispatch of tasks to units, minimum-cost flow.

Arrays in, arrays out: nothing here knows a job, a machine or a policy. Importing this package does not import Numba; its
modules do (`jit` says where what they compile is kept), so only an engine that is about to replay imports them. A family
imports nothing of another: what it compiled stays valid until one of its own files changes.
"""
