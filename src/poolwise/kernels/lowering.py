"""Translation of kernels from Numba's to LLVM's intermediate representation, with fewer instructions than Numba generates.

Numba copies an array's seven words to the stack for each access of an element, and computes its address from all of them: 27
instructions, of which LLVM keeps two. Writing, printing and reading them takes more time than optimizing them away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import cgutils, types
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering
from numba.np.arrayobj import load_item, store_item

ITEMS, ITEM_SIZE, DATA, SHAPE, STRIDES = range(2, 7)
"""Positions among the words of an array; the first two identify the owner of its memory."""


class KernelLower(Lower):
    """Numba's translation of a function, with its own access of elements.

    Kernels never index from the end of an array by a variable: indices that are not constants are unsigned. With signed ones
    Numba writes a comparison and a selection for each. A negative index is an error, which NUMBA_BOUNDSCHECK=1 reports.
    """

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Read an element, if the index selects one."""
        array = self.typeof(value.name)
        at = self._address(array, self.loadvar(value.name), index)
        if at is None:
            return super().lower_getitem(resty, expr, value, index, self._unsigned(index, signature))
        return self.context.cast(self.builder, load_item(self.context, self.builder, array, at), array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Write an element, if the index selects one."""
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
        """Return the signature of an access to an item, with unsigned integers unless the index counts from the end."""
        array, kind, *value = call.args
        if isinstance(array, types.Array) and not any(map(_is_from_end, _parts(self.typeof(index.name)))):
            if isinstance(kind, types.Integer):
                kind = types.uintp
            elif isinstance(kind, types.UniTuple) and isinstance(kind.dtype, types.Integer):
                kind = types.UniTuple(types.uintp, kind.count)
        return call.replace(args=(array, kind, *value))

    def _address(self, array: Any, words: Any, index: Any) -> Any:
        """Return the address of an element of an array in C order; None for other arrays, or if the index selects none."""
        if not isinstance(array, types.Array) or array.layout != "C" or self.context.enable_boundscheck:
            return None
        kind, value = self.typeof(index.name), self.loadvar(index.name)
        kinds = _parts(kind)
        if len(kinds) != array.ndim or not all(isinstance(each, types.Integer) and not _is_from_end(each) for each in kinds):
            return None
        values = [value] if isinstance(kind, types.Integer) else cgutils.unpack_tuple(self.builder, value, len(kinds))
        offset = None
        for axis, (position, integer) in enumerate(zip(values, kinds, strict=True)):
            term = self.context.cast(self.builder, position, integer, types.intp)
            if offset is not None:
                length = self.builder.extract_value(words, (SHAPE, axis))
                term = self.builder.add(self.builder.mul(offset, length), term)
            offset = term
        return self.builder.gep(self.builder.extract_value(words, DATA), [offset])


def _parts(index: Any) -> Sequence[Any]:
    """Return the types of the parts of an index, one for each dimension that it refers to."""
    return index.types if isinstance(index, types.UniTuple | types.Tuple) else (index,)


def _is_from_end(index: Any) -> bool:
    """Return whether the values of a type are a constant that counts from the end of an array."""
    return isinstance(index, types.IntegerLiteral) and index.literal_value < 0


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(BaseNativeLowering):
    """Pass that translates a function with `KernelLower`."""

    _name = "kernel_lowering"  # type: ignore[assignment]

    @property
    def lowering_class(self) -> type[KernelLower]:
        """Return `KernelLower`, the class that translates."""
        return KernelLower
