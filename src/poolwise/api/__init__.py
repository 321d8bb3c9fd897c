"""The functions behind `import poolwise`: simulations, forecasts of start times, and the placement of batches.

`poolwise.api.simulation` imports what a simulation needs; forecasts and batches are in modules of their own, so that a
simulation does not wait for their imports.
"""

from poolwise.api.simulated_run import SPARSE_SHARE, SimulatedRun, measured, notes
from poolwise.api.simulation import (
    choose_scheduler,
    default_model,
    default_model_name,
    default_placement_name,
    list_scheduler,
    read_scheduler,
    simulate,
)

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
