"""Engines: families of compiled runs, and how a run is put together from its parts."""

from poolwise.engines.select import load_kernels
from poolwise.engines.simulate import Engine, Result, simulate
from poolwise.platforms.simulated import Disturbance, Simulation

__all__ = ["Disturbance", "Engine", "Result", "Simulation", "load_kernels", "simulate"]
