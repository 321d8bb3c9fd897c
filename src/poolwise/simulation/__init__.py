"""Simulations: a scheduler from names, one run with its default placement and model, and its results."""

from poolwise.simulation.run import simulate
from poolwise.simulation.selection import (
    choose_scheduler,
    default_model,
    default_model_name,
    default_placement_name,
    list_scheduler,
    read_scheduler,
)
from poolwise.simulation.simulated_run import SPARSE_SHARE, SimulatedRun, measured, notes

__all__ = [
    "SPARSE_SHARE",
    "SimulatedRun",
    "choose_scheduler",
    "default_model",
    "default_model_name",
    "default_placement_name",
    "list_scheduler",
    "measured",
    "notes",
    "read_scheduler",
    "simulate",
]
