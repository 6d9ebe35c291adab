"""Nested tensors whose rows differ in any of their sizes (layout clew.strided): the elements of all
rows in one vector, and the shape of each row.

Rows that differ in one size only are better held as ragged tensors (clew.jagged), for which there
are more rules and faster ones.
"""

# mypy: disable-error-code="override"
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import clew
from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew._tensor.structured import Structured, placeholder
from clew.nested._tensor import UnevenSize
from clew.nested._tensor import _Shape as _RaggedShape

__all__ = ["NestedRows", "is_nested_rows", "of_parts", "of_rows", "row_dim"]

Shapes = tuple[tuple[int, ...], ...]


class RowSizes(UnevenSize):
    """A size in which rows differ.

    Attributes:
        sizes: that of each row.
    """

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes

    def __repr__(self) -> str:
        return "*"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowSizes) and self.sizes == other.sizes

    def __hash__(self) -> int:
        return hash(self.sizes)


class _Shape(_RaggedShape):
    """The sizes of a nested tensor; those in which rows differ are `RowSizes`."""

    def numel(self) -> int:
        rows = range(self[0])
        return sum(
            math.prod(s.sizes[i] if isinstance(s, RowSizes) else s for s in self[1:]) for i in rows
        )


class NestedRows(Structured):
    """A batch of tensors that have the same number of dims and any sizes. Made by
    `clew.nested.nested_tensor` and `as_nested_tensor` with `layout=clew.strided`.
    """

    _kind = "nested tensors (clew.strided)"
    _remedy = ".to_padded_tensor(padding), or work on the rows of .unbind()"
    _shapes: Shapes
    _mapped_by_length: ClassVar[Callable[..., Any]]  # clew.nested._vmap fills it

    layout = property(lambda self: _dtypes.strided)
    is_nested = property(lambda self: True)
    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: False)

    def values(self) -> Tensor:
        """The elements of all rows, in one vector."""
        return self._elements

    def row_values(self) -> list[Tensor]:
        """The rows: views of `values()`."""
        if not self._shapes:
            return []
        parts = self._elements.split([math.prod(s) for s in self._shapes])
        return [p.view(s) for p, s in zip(parts, self._shapes)]

    def _with(self, values: Tensor) -> NestedRows:
        return _made(self._shapes, values)

    def _has_places_of(self, other: Any) -> bool:
        return isinstance(other, NestedRows) and self._shapes == other._shapes

    def _nested_tensor_size(self) -> Tensor:
        """(rows, dims without the batch) int64: the size of each row."""
        n = len(self._sizes()) - 1
        return clew.tensor(self._shapes, dtype=_C.int64).reshape(len(self._shapes), n)

    # ---- sizes ----

    def _sizes(self) -> tuple[int, ...]:
        """Those of the batch padded to its largest rows."""
        return len(self._shapes), *(max(sizes) for sizes in zip(*self._shapes))

    def _placeholder(self) -> Tensor:
        return placeholder(self._sizes(), self.dtype)

    @property
    def shape(self) -> Any:
        sizes = (tuple(column) for column in zip(*self._shapes))
        return _Shape(
            (len(self._shapes), *(c[0] if len(set(c)) == 1 else RowSizes(c) for c in sizes))
        )

    def size(self, dim: int | None = None) -> Any:
        """The sizes, or one that the rows share.

        Args:
            dim: which one; all without it.

        Raises:
            RuntimeError: the rows differ in it.
        """
        if dim is None:
            return self.shape
        found = self.shape[row_dim("size", self, dim, batch=True)]
        if isinstance(found, RowSizes):
            raise RuntimeError(
                f"size: the rows differ in dim {dim}: {list(found.sizes)[:8]}; see "
                "._nested_tensor_size()"
            )
        return found

    def numel(self) -> int:
        """How many elements the rows have."""
        return int(self._elements.numel())

    nelement = numel

    @property
    def nbytes(self) -> int:
        return self.numel() * int(self._elements.element_size())

    @property
    def T(self) -> Any:
        self._refuse("T")

    # ---- printing and copies ----

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        rows = [repr(r).replace("\n", "\n  ") for r in self.detach().row_values()]
        more = ""
        if self.grad_fn is not None:
            more = f", grad_fn=<{self.grad_fn.name()}>"
        elif self.requires_grad:
            more = ", requires_grad=True"
        return "nested_tensor([\n  " + ",\n  ".join(rows) + "\n]" + more + ")"

    def _saved_parts(self) -> Any:
        leaf = self._elements.detach().requires_grad_(self.requires_grad)
        return "strided", (leaf, self._nested_tensor_size(), "nested")

    def _reduced(self) -> Any:
        args = (self._elements.detach(), self._nested_tensor_size(), bool(self.requires_grad))
        return _rebuild, args

    @classmethod
    def _refuse(cls, name: str) -> NoReturn:
        raise NotImplementedError(
            f"{name}: there is no rule for {cls._kind} with these arguments; convert with "
            f"{cls._remedy}; rows that differ in one size only have more rules as ragged tensors: "
            "clew.nested.as_nested_tensor(x, layout=clew.jagged)"
        )


def _made(shapes: Shapes, values: Tensor) -> NestedRows:
    sizes = len(shapes), *(max(s) for s in zip(*shapes))
    made: NestedRows = NestedRows._over(sizes, values)
    made._shapes = shapes
    return made


def of_rows(rows: list[Tensor]) -> NestedRows:
    """A nested tensor of rows of one dtype and one number of dims, through which gradients flow."""
    shapes = tuple(tuple(r.shape) for r in rows)
    return _made(shapes, clew.cat([r.reshape(-1) for r in rows]))


def of_parts(values: Any, sizes: Any) -> NestedRows:
    """A nested tensor of its elements and (rows, dims) int64, the sizes of each row."""
    name = "nested tensor"
    if type(values) is not Tensor or values.dim() != 1:
        raise RuntimeError(f"{name}: the elements must be a vector")
    if type(sizes) is not Tensor or sizes.dtype is not _C.int64 or sizes.dim() != 2:
        raise RuntimeError(f"{name}: the sizes must be a matrix of int64")
    shapes = tuple(tuple(s) for s in sizes.tolist())
    if any(n < 0 for s in shapes for n in s):
        raise RuntimeError(f"{name}: sizes must not be negative")
    total = sum(math.prod(s) for s in shapes)
    if not shapes or total != values.numel():
        raise RuntimeError(
            f"{name}: the rows must have {values.numel()} elements together; got {total}"
        )
    return _made(shapes, values)


def _rebuild(values: Tensor, sizes: Tensor, requires_grad: bool) -> NestedRows:
    return of_parts(values.requires_grad_(requires_grad), sizes)


def is_nested_rows(x: Any) -> bool:
    """Whether something is a nested tensor of layout clew.strided."""
    return isinstance(x, NestedRows)


def row_dim(name: str, x: NestedRows, dim: Any, batch: bool = False) -> int:
    """A dim counted from the front, of rows unless `batch` is true."""
    n = len(x._sizes())
    d = int(dim)
    if not -n <= d < n:
        raise IndexError(f"{name}: dim must be in [{-n}, {n - 1}]; got {d}")
    if d % n == 0 and not batch:
        raise RuntimeError(
            f"{name}: dim 0 counts the rows of a nested tensor, which differ in their sizes; make "
            "the tensor dense with .to_padded_tensor(padding), or work on the rows of .unbind()"
        )
    return d % n
