"""Engines: the reference simulator, and how a run is put together."""

from poolwise.engine.simulate import Engine, Result, simulate
from poolwise.engine.simulated import Disturbance, Simulation

__all__ = ["Disturbance", "Engine", "Result", "Simulation", "simulate"]
