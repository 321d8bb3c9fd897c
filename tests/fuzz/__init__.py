"""Fuzzer of trace readers: real logs of ten formats, mutated from a seed, must yield a workload or a clear error.

`python -m tests.fuzz --help` lists the options for long runs; `tests/traces/test_fuzz.py` tests a short sample.
"""
