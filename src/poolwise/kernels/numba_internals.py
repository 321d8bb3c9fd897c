"""All that Poolwise uses of Numba's internals, for versions of Numba that it was tested with: see `jit.TESTED`.

It decides how the code of a kernel and its steps becomes machine code: the steps with the kernel, all at once.

Numba optimises each function and translates it to machine code, together with everything below it, before its caller does
the same again: a function six calls deep goes through LLVM seven times. A step is never run on its own, so nothing is done
with it until the kernel that calls it is complete; and as nobody else calls it, its calls follow no convention then:
arguments that it does not read are dropped, of an array that it reads only what it reads is handed over.

Kernels never count from the end of an array. Told so, Numba leaves out a comparison and a choice wherever an index is not a
constant, and with them every length of an array.
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
    """Code of a kernel with all its steps."""

    def _optimize_final_module(self) -> None:
        """Optimise it, the steps known to be called from here alone."""
        self._own_steps()
        super()._optimize_final_module()  # type: ignore[no-untyped-call]  # has no types

    def _own_steps(self) -> None:
        """Let no one else call the steps."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal


class EntryCode(KernelCode):
    """Code of a kernel that follows events: it is all branches, and as fast with one pass of the optimiser, without vectors."""

    def _optimize_final_module(self) -> None:
        """Optimise it once, as far as `-O2` does."""
        self._own_steps()
        codegen: Any = self._codegen
        passes, builder = codegen._module_pass_manager(opt=2, loop_vectorize=False, slp_vectorize=False)
        passes.run(self._final_module, builder)


class StepCode(JITCodeLibrary):
    """Code of a step and of the steps that it calls, neither optimised nor translated."""

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel."""

    def _finalize_final_module(self) -> None:
        """Be ready to be linked; without machine code there is nothing else to be ready for."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, which stands for a function without machine code."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]  # has no types
        return 0

    @property
    def codegen(self) -> StepCode:
        """Return the library itself, which receives the environment of the function: see `set_env`."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Drop the Python objects that an error might name: steps raise no errors."""


@register_pass(mutates_CFG=False, analysis_only=False)  # type: ignore[no-untyped-call]  # has no types
class UnsignedIndices(FunctionPass):
    """Take the integers that index an array for unsigned ones: a negative one is an error, which NUMBA_BOUNDSCHECK=1 shows."""

    _name = "unsigned_indices"

    def __init__(self) -> None:
        FunctionPass.__init__(self)  # type: ignore[no-untyped-call]  # has no types

    def run_pass(self, state: Any) -> bool:
        """Change the types of the calls that get or set an item."""
        state.calltypes = {
            at: _unsigned(call) if isinstance(at, ir.SetItem) or (isinstance(at, ir.Expr) and at.op == "getitem") else call
            for at, call in state.calltypes.items()
        }
        return True


def _unsigned(call: Any) -> Any:
    """Signature of a call that gets or sets an item, its index unsigned if it is an integer or made of integers."""
    array, index, *value = call.args
    if isinstance(array, types.Array):
        if isinstance(index, types.Integer):
            index = types.uintp
        elif isinstance(index, types.UniTuple) and isinstance(index.dtype, types.Integer):
            index = types.UniTuple(types.uintp, index.count)  # type: ignore[no-untyped-call]  # has no types
    return call.replace(args=(array, index, *value))


class KernelCompiler(CompilerBase):
    """Numba's compiler, except for the library that holds the code, and for indices."""

    code: type[JITCodeLibrary] = KernelCode

    def define_pipelines(self) -> list[Any]:
        """Passes of the compiler: the usual ones and `UnsignedIndices`."""
        state = self.state
        state.library = self.code(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        passes = DefaultPassBuilder.define_nopython_pipeline(state)  # type: ignore[no-untyped-call]  # has no types
        passes.add_pass_after(UnsignedIndices, NopythonTypeInference)
        passes.finalize()
        return [passes]


class EntryCompiler(KernelCompiler):
    """The same for an entry."""

    code = EntryCode


class StepCompiler(KernelCompiler):
    """The same for a step."""

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
