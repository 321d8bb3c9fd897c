"""Translation of kernels from Numba's intermediate representation to that of LLVM, with fewer instructions than Numba writes.

Numba copies an array's seven words to the stack for each access of an element, and computes its address from all of them: 27
instructions, of which LLVM keeps two. Writing, printing and reading them takes more time than optimizing them away.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering
from numba.np.arrayobj import load_item, store_item

ITEMS, ITEM_SIZE, DATA, SHAPE, STRIDES = range(2, 7)
"""Positions among the words of an array; the first two say who owns its memory."""


class KernelLower(Lower):
    """Numba's translation of a function, with its own access of elements.

    Kernels never index from the end of an array by a variable: indices that are not constants are unsigned. With signed ones
    Numba writes a comparison and a selection for each. A negative index is an error, which NUMBA_BOUNDSCHECK=1 reports.
    """

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Read an element, if the index denotes one."""
        array = self.typeof(value.name)
        at = self._address(array, self.loadvar(value.name), index)
        if at is None:
            return super().lower_getitem(resty, expr, value, index, self._unsigned(index, signature))
        return self.context.cast(self.builder, load_item(self.context, self.builder, array, at), array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Write an element, if the index denotes one."""
        array = self.typeof(target_var.name)
        at = self._address(array, self.loadvar(target_var.name), index_var)
        if at is None:
            return super().lower_setitem(target_var, index_var, value_var, self._unsigned(index_var, signature))
        value = self.context.cast(self.builder, self.loadvar(value_var.name), self.typeof(value_var.name), array.dtype)
        store_item(self.context, self.builder, array, value, at)
        return None

    def delvar(self, name: str) -> None:
        """Forget a variable; nothing counts references in a kernel that allocates nothing."""
        if self.context.enable_nrt:
            super().delvar(name)

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """Reserve a variable on the stack, without the size that only a debugger needs: LLVM takes long to compute it."""
        return cgutils.alloca_once(self.builder, lltype, name=name)

    def _unsigned(self, index: Any, call: Any) -> Any:
        """Return the signature of an access to an item, with unsigned integers for an index that is not a constant."""
        array, kind, *value = call.args
        if isinstance(array, types.Array) and not isinstance(self.typeof(index.name), types.Literal):
            if isinstance(kind, types.Integer):
                kind = types.uintp
            elif isinstance(kind, types.UniTuple) and isinstance(kind.dtype, types.Integer):
                kind = types.UniTuple(types.uintp, kind.count)
        return call.replace(args=(array, kind, *value))

    def _address(self, array: Any, words: Any, index: Any) -> Any:
        """Return the address of an element of an array in C order, or None if the index denotes no element of one."""
        if not isinstance(array, types.Array) or array.layout != "C" or self.context.enable_boundscheck:
            return None
        kind: Any = self.typeof(index.name)
        kinds, values = [kind], [self.loadvar(index.name)]
        if isinstance(kind, types.UniTuple | types.Tuple):
            kinds, values = [*kind.types], cgutils.unpack_tuple(self.builder, values[0], len(kind))
        if len(kinds) != array.ndim or not all(map(_is_index, kinds)):
            return None
        offset = None
        for axis, (each, position) in enumerate(zip(values, kinds, strict=True)):
            term = self.context.cast(self.builder, each, position, types.intp)
            if offset is not None:
                length = self.builder.extract_value(words, (SHAPE, axis))
                term = self.builder.add(self.builder.mul(offset, length), term)
            offset = term
        return self.builder.gep(self.builder.extract_value(words, DATA), [offset])


def _is_index(kind: Any) -> bool:
    """Return whether values of a type are integers that do not count from the end of an array."""
    return isinstance(kind, types.Integer) and not (isinstance(kind, types.IntegerLiteral) and kind.literal_value < 0)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(BaseNativeLowering):
    """Pass that translates a function with `KernelLower`."""

    _name = "kernel_lowering"  # type: ignore[assignment]

    @property
    def lowering_class(self) -> type[KernelLower]:
        """Return the class that translates."""
        return KernelLower
