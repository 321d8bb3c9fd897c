"""Engines: the reference simulator, and how a run is put together."""

from poolwise.engine.simulate import Result, simulate
from poolwise.engine.simulated import Disturbance, Simulation

__all__ = ["Disturbance", "Result", "Simulation", "simulate"]
