"""Use of Numba's internals, limited to the versions listed in `jit.TESTED`.

It controls the translation of kernels to machine code: a kernel and its steps are compiled together, once.

By default Numba optimizes each function together with all its callees and translates it to machine code, then its caller does
the same again: a function six calls deep passes through LLVM seven times. A step is never run on its own, so it is left
untranslated until the kernel that calls it is complete. Since a step then has no other callers, LLVM may change its calling
convention: it drops arguments that the step does not read, and passes only the fields of an array that it reads.

Kernels never index from the end of an array. With unsigned indices Numba omits a comparison and a selection for each index that
is not constant, and with them every array length.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # ships no types
from numba.core import ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference

Linkage: Any = llvm.Linkage


class KernelCode(JITCodeLibrary):
    """Code library of a kernel with all its steps."""

    def _optimize_final_module(self) -> None:
        """Optimize the module, with its steps marked as internal."""
        self._own_steps()
        super()._optimize_final_module()  # type: ignore[no-untyped-call]  # has no types

    def _own_steps(self) -> None:
        """Make the steps internal to the module."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal


class EntryCode(KernelCode):
    """Code library of a kernel that processes events: mostly branches, so one optimizer pass without vectorization suffices."""

    def _optimize_final_module(self) -> None:
        """Run one `-O2` pipeline."""
        self._own_steps()
        codegen: Any = self._codegen
        passes, builder = codegen._module_pass_manager(opt=2, loop_vectorize=False, slp_vectorize=False)
        passes.run(self._final_module, builder)


class StepCode(JITCodeLibrary):
    """Code library of a step and its callees, neither optimized nor translated."""

    def _optimize_final_module(self) -> None:
        """Do nothing; the kernel optimizes the step."""

    def _finalize_final_module(self) -> None:
        """Mark the library as ready to be linked; it has no machine code."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: the function has no machine code."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]  # has no types
        return 0

    @property
    def codegen(self) -> StepCode:
        """The library itself, which receives the environment of the function: see `set_env`."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Discard the Python objects that an error might refer to: steps raise no errors."""


@register_pass(mutates_CFG=False, analysis_only=False)  # type: ignore[no-untyped-call]  # has no types
class UnsignedIndices(FunctionPass):
    """Treats array indices as unsigned: a negative index is an error, which NUMBA_BOUNDSCHECK=1 reports."""

    _name = "unsigned_indices"

    def __init__(self) -> None:
        FunctionPass.__init__(self)  # type: ignore[no-untyped-call]  # has no types

    def run_pass(self, state: Any) -> bool:
        """Change the signatures of calls that get or set an item."""
        state.calltypes = {
            at: _unsigned(call) if isinstance(at, ir.SetItem) or (isinstance(at, ir.Expr) and at.op == "getitem") else call
            for at, call in state.calltypes.items()
        }
        return True


def _unsigned(call: Any) -> Any:
    """Return the signature of a call that gets or sets an item, with unsigned integer indices."""
    array, index, *value = call.args
    if isinstance(array, types.Array):
        if isinstance(index, types.Integer):
            index = types.uintp
        elif isinstance(index, types.UniTuple) and isinstance(index.dtype, types.Integer):
            index = types.UniTuple(types.uintp, index.count)  # type: ignore[no-untyped-call]  # has no types
    return call.replace(args=(array, index, *value))


class KernelCompiler(CompilerBase):
    """Numba's compiler with another code library and unsigned indices."""

    code: type[JITCodeLibrary] = KernelCode

    def define_pipelines(self) -> list[Any]:
        """Return the passes of the compiler: the usual ones and `UnsignedIndices`."""
        state = self.state
        state.library = self.code(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        passes = DefaultPassBuilder.define_nopython_pipeline(state)  # type: ignore[no-untyped-call]  # has no types
        passes.add_pass_after(UnsignedIndices, NopythonTypeInference)
        passes.finalize()
        return [passes]


class EntryCompiler(KernelCompiler):
    """Compiler of entries."""

    code = EntryCode


class StepCompiler(KernelCompiler):
    """Compiler of steps."""

    code = StepCode


# Options of `numba.njit` for each decorator of `jit`
KERNEL: dict[str, Any] = {"pipeline_class": KernelCompiler}
ENTRY: dict[str, Any] = {"pipeline_class": EntryCompiler, "_nrt": False}
STEP: dict[str, Any] = {
    "pipeline_class": StepCompiler,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
INLINED: dict[str, Any] = {**STEP, "forceinline": True}
