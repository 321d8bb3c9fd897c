"""Engines: compiled engines with one kernel package each, the reference engine, and the choice between them."""

from poolwise.engines.select import load_kernels
from poolwise.engines.simulate import Engine, Result, simulate
from poolwise.platforms.simulated import Disturbance, Simulation

__all__ = ["Disturbance", "Engine", "Result", "Simulation", "load_kernels", "simulate"]
