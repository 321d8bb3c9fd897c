"""Damaged logs: real ones of ten formats, mutated by a seed, must give a workload or a clear error.

`python -m tests.fuzz --help` says how to run many; a short slice of it is a test (`tests/traces/test_fuzz.py`).
"""
