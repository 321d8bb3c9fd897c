"""Workload generators: workloads drawn from a model instead of read from a log, one model per module, each registered."""

from poolwise.traces.generators.generator import Generator, configure, generate

__all__ = ["Generator", "configure", "generate"]
