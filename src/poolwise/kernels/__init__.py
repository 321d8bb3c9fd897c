"""Compiled loops over arrays: list scheduling of rigid jobs on racks with memory pools.

Arrays in, arrays out: nothing here knows a job, a machine or a policy. Importing this package does not import Numba;
its modules do (`jit` says where what they compile is kept), so only an engine that is about to replay imports them.
"""
