"""Use of Numba's internals, limited to the versions listed in `jit.TESTED`.

It controls the translation of kernels to machine code: a kernel and its steps are compiled together, once.

By default Numba optimizes each function together with all its callees and translates it to machine code, then its caller does
the same again: a function six calls deep passes through LLVM seven times. A step is never run on its own, so it is left
untranslated until the kernel that calls it is complete. Since a step then has no other callers, LLVM may change its calling
convention: it drops arguments that the step does not read, and passes fields in registers.

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
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NopythonTypeInference

Linkage: Any = llvm.Linkage


class KernelCode(JITCodeLibrary):
    """Code library of a kernel with all its steps."""

    def finalize(self) -> None:
        """Link all steps, including those that only other steps call, then optimize and translate."""
        pending = list(self._linking_libraries)
        while pending:
            library = pending.pop()
            if isinstance(library, StepCode):
                new = [called for called in library._linking_libraries if called not in self._linking_libraries]
                self._linking_libraries += dict.fromkeys(new)
                pending += dict.fromkeys(new)
        super().finalize()  # type: ignore[no-untyped-call]  # has no types

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
        """Run one `-O3` pipeline."""
        self._own_steps()
        codegen: Any = self._codegen
        passes, builder = codegen._module_pass_manager(opt=3, loop_vectorize=False, slp_vectorize=False)
        passes.run(self._final_module, builder)


class StepCode(JITCodeLibrary):
    """Code library of a step and its callees, neither optimized nor translated."""

    def _optimize_functions(self, module: Any) -> None:
        """Set the data layout only; the kernel optimizes the step."""
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Mark the library as ready to be linked, together with those that it calls; it has no machine code."""
        self._raise_if_finalized()  # type: ignore[no-untyped-call]  # has no types
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the module, whose functions may be defined by several kernels."""
        if self._shared_module is None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == Linkage.external:
                    function.linkage = Linkage.linkonce_odr
            self._shared_module = self._final_module
        return self._shared_module

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


class _CallTypes:
    """Signatures of operators by types and compiler flags, each resolved once instead of at each use.

    Numba tries about twenty implementations of an operator at each use, and compares all flags for each of them.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Any] = {}
        self._flags: tuple[Any, str] = None, ""
        self._depth = 0
        self._function: Any = types.Function
        self._resolve = self._function.get_call_type

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._function.get_call_type = self._method()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._function.get_call_type = self._resolve

    def _method(self) -> Any:
        def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
            flags = ConfigStack.top_or_none()  # type: ignore[no-untyped-call]  # has no types
            if kws or flags is None:
                return self._resolve(function, context, args, kws)
            if flags is not self._flags[0]:
                self._flags = flags, repr(flags)
            key = self._flags[1], function, tuple(args)
            if key not in self._known:
                self._known[key] = self._resolve(function, context, args, kws)
            return self._known[key]

        return get_call_type


_call_types = _CallTypes()


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

    def _compile_core(self) -> Any:
        """Compile with operators resolved once."""
        with _call_types:
            return super()._compile_core()  # type: ignore[no-untyped-call]  # has no types

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


class BodyCode(StepCode):
    """Code library of the step that an entry calls with references: it is not inlined into the entry, see `references`."""

    def add_ir_module(self, module: Any) -> None:
        """Add a module whose functions are not inlined."""
        for function in module.functions:
            if not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(module)  # type: ignore[no-untyped-call]  # has no types


class HintedCode(StepCode):
    """Code library of a step that LLVM inlines more readily than others."""

    def add_ir_module(self, module: Any) -> None:
        """Add a module whose functions are preferably inlined."""
        for function in module.functions:
            if not function.is_declaration:
                function.attributes.add("inlinehint")
        super().add_ir_module(module)  # type: ignore[no-untyped-call]  # has no types


class HintedCompiler(KernelCompiler):
    """Compiler of steps that are preferably inlined."""

    code = HintedCode


class BodyCompiler(KernelCompiler):
    """Compiler of the bodies of entries."""

    code = BodyCode


# Options of `numba.njit` for each decorator of `jit`
KERNEL: dict[str, Any] = {"pipeline_class": KernelCompiler}
ENTRY: dict[str, Any] = {"pipeline_class": EntryCompiler, "_nrt": False}
STEP: dict[str, Any] = {
    "pipeline_class": StepCompiler,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
BODY: dict[str, Any] = {**STEP, "pipeline_class": BodyCompiler}
INLINED: dict[str, Any] = {**STEP, "pipeline_class": HintedCompiler}
