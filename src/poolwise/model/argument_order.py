"""Check that a public function got its workload and its machine, in this order."""

from __future__ import annotations

from poolwise.model.machine import Machine
from poolwise.model.workload import Workload


def check_workload_and_machine(function: str, workload: object, machine: object) -> None:
    """Raise TypeError unless `workload` is a Workload and `machine` is a Machine; it says if they were swapped."""
    if isinstance(workload, Machine) and isinstance(machine, Workload):
        raise TypeError(f"{function}() takes the workload first and the machine second; swap the two arguments")
    for name, value, kind in (("workload", workload, Workload), ("machine", machine, Machine)):
        if not isinstance(value, kind):
            raise TypeError(f"{function}() needs a poolwise.{kind.__name__} as {name}, got {type(value).__name__}")
