"""Batches of workloads on CPU modules with small local memory: the problem, ways to place them, a checker and bounds."""
