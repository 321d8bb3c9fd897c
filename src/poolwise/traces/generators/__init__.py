"""Generators: workloads drawn from a model instead of read from a log. One model a file; each registers itself."""

from poolwise.traces.generators.generator import Generator, configure, generate

__all__ = ["Generator", "configure", "generate"]
