"""Build hook that puts compiled kernels into a platform wheel: `make dist`."""

import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface):
    """Adds the folder that POOLWISE_COMPILED_KERNELS names. Without it the wheel holds Python files only."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folder, and tag the wheel with the version of Python and the platform whose code it holds."""
        folder = os.environ.get("POOLWISE_COMPILED_KERNELS")
        if folder and self.target_name == "wheel":
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            build_data["pure_python"] = False
            build_data["tag"] = f"{python}-{python}-manylinux_2_28_x86_64"
            build_data["force_include"][folder] = "poolwise/kernels/compiled"
