"""Batch placement on CPU modules with small local memory: the problem, placement methods, a checker and bounds."""
