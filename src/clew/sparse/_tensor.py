"""Sparse tensors in coordinates (COO) and in compressed rows or columns (CSR, CSC)."""

# mypy: disable-error-code="override"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import clew
from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew._tensor.structured import Structured, as_text
from clew._tensor.text import _contents, get_printoptions, printoptions

__all__ = ["Compressed", "Coo", "Pattern", "coo", "is_same_pattern"]


class Pattern:
    """Where a matrix in compressed rows has elements. What is derived from it is kept: patterns
    are shared by the tensors that operations make.

    Attributes:
        crow: where each row begins, and the last one ends.
        col: the column of each element.
        shape: rows and columns.
    """

    def __init__(self, crow: Tensor, col: Tensor, shape: tuple[int, int]) -> None:
        self.crow, self.col, self.shape = crow, col, shape
        self._rows: Tensor | None = None
        self._mirror: Tensor | None = None
        self._turned: Pattern | None = None

    def rows(self) -> Tensor:
        """The row of each element, int64."""
        if self._rows is None:
            counts = self.crow[1:] - self.crow[:-1]
            self._rows = clew.arange(self.shape[0]).repeat_interleave(counts.long())
        return self._rows

    def mirror(self) -> Tensor:
        """The transposed pattern in one vector, which the kernels read."""
        if self._mirror is None:
            self._mirror = _C.ops._sparse_csr_mirror(self.crow, self.col, self.shape[1])
        return self._mirror

    def turned(self) -> tuple[Pattern, Tensor]:
        """The transposed pattern, and the place here of each of its elements."""
        flat, n, m = self.mirror(), self.shape[1], self.col.shape[0]
        if self._turned is None:
            self._turned = Pattern(flat[: n + 1], flat[n + 1 : n + 1 + m], self.shape[::-1])
        return self._turned, flat[n + 1 + m :]


def _of_layout(name: str, wanted: str) -> Any:
    """A method that the classes of other layouts have for parts that they lack."""

    def method(self: Any) -> Any:
        raise RuntimeError(
            f"{name}: expected a tensor of layout {wanted}; got {self.layout}; convert with "
            f".to_{wanted}()"
        )

    method.__name__ = name
    return method


class _Sparse(Structured):
    _remedy = ".to_dense()"

    # Asked several times for each operation: the way by __torch_function__ takes ten times as long.
    def dim(self) -> int:
        return len(self.shape)

    ndimension = dim

    def values(self) -> Tensor:
        """The elements, in the order of the indices."""
        return self._elements

    def _nnz(self) -> int:
        return int(self._elements.shape[0])

    def is_coalesced(self) -> bool:
        raise NotImplementedError

    def _has_places_of(self, other: Any) -> bool:
        return (
            isinstance(other, _Sparse)
            and other.layout is self.layout
            and tuple(other.shape) == tuple(self.shape)
            and is_same_pattern(self, other)
        )

    indices, _indices, _values = (
        _of_layout(n, "sparse_coo") for n in ("indices", "_indices", "_values")
    )
    coalesce: Any = _of_layout("coalesce", "sparse_coo")
    crow_indices, col_indices = (
        _of_layout(n, "sparse_csr") for n in ("crow_indices", "col_indices")
    )
    ccol_indices, row_indices = (
        _of_layout(n, "sparse_csc") for n in ("ccol_indices", "row_indices")
    )

    @property
    def T(self) -> Any:
        return self.permute(*reversed(range(self.dim())))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is not None:
            return super().type(dtype, non_blocking)
        home, name = self._elements.type().rsplit(".", 1)
        return f"{home}.sparse.{name}"

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(
            f"numpy: a tensor of layout {self.layout} is no array; convert first with .to_dense()"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self.numpy()

    @property
    def real(self) -> Any:
        return self._with(self._elements.real)

    @property
    def imag(self) -> Any:
        return self._with(self._elements.imag)

    @property
    def H(self) -> Any:
        return self.adjoint()

    @property
    def mH(self) -> Any:
        return self.adjoint()

    def _text(self, parts: list[tuple[str, Tensor]]) -> str:
        text = as_text([(n, _Shown(n, p.detach())) for n, p in parts])
        more = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}"]
        usual = _C.get_default_dtype()
        if self.dtype not in (usual, usual.to_complex(), _C.int64, _C.bool):
            more.append(f"dtype={self.dtype}")
        more.append(f"layout={self.layout}")
        if self.grad_fn is not None:
            more.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            more.append("requires_grad=True")
        if self.is_sparse:
            return f"{text},\n       {', '.join(more)})"
        # PyTorch breaks lines of compressed layouts where they are full.
        column = len(text) - text.rfind("\n") + 1
        for one in more:
            if column + len(one) + 2 > get_printoptions()["linewidth"]:
                text, column = f"{text},\n       {one}", 7 + len(one)
            else:
                text, column = f"{text}, {one}", column + len(one) + 2
        return text + ")"


class _Shown:
    """A part as it is printed: its dtype is said once, of the whole; without elements, its size."""

    def __init__(self, name: str, part: Tensor) -> None:
        self._part = part
        self._width = get_printoptions()["linewidth"] - len(name) - 8

    def __repr__(self) -> str:
        if not self._part.numel():
            return f"tensor([], size={tuple(self._part.shape)})"
        with printoptions(linewidth=self._width):
            return f"tensor({_contents(self._part, 7)})"


class Coo(_Sparse):
    """A sparse tensor in coordinates: each column of `indices()` names the place of an element of
    `values()`, which may itself be a dense tensor. Made by `clew.sparse_coo_tensor`.
    """

    _kind = "sparse tensors (clew.sparse_coo)"
    _mapped_in_turn = True  # by vmap: samples have places of their own
    _ind: Tensor
    _coalesced: bool
    _pattern: Pattern | None

    layout = property(lambda self: _dtypes.sparse_coo)
    is_sparse = property(lambda self: True)
    is_sparse_csr = property(lambda self: False)

    def indices(self) -> Tensor:
        """The places of the elements, (sparse dims, elements); of a coalesced tensor."""
        if not self._coalesced:
            raise RuntimeError(
                "indices: Cannot get indices on an uncoalesced tensor, please call .coalesce() "
                "first"
            )
        return self._ind

    def values(self) -> Tensor:
        """The elements, in the order of the indices; of a coalesced tensor."""
        if not self._coalesced:
            raise RuntimeError(
                "values: Cannot get values on an uncoalesced tensor, please call .coalesce() first"
            )
        return self._elements

    def _indices(self) -> Tensor:
        return self._ind

    def _values(self) -> Tensor:
        return self._elements

    def _coalesced_(self, coalesced: bool) -> Coo:
        """Says whether places are sorted and named once, which nobody checks, as in PyTorch."""
        self._coalesced = bool(coalesced)
        return self

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False, as in PyTorch: places are not those of a dense tensor's elements."""
        return False

    def stride(self, dim: Any = None) -> Any:
        """Zeros, as in PyTorch."""
        return (0,) * self.dim() if dim is None else 0

    def sparse_dim(self) -> int:
        """How many dims the indices name."""
        return int(self._ind.shape[0])

    def dense_dim(self) -> int:
        """How many dims each element has."""
        return int(self._elements.dim()) - 1

    def is_coalesced(self) -> bool:
        """Whether places are known to be sorted and named once."""
        return self._coalesced

    def _with(self, values: Tensor) -> Coo:
        return coo(self._ind, values, self.shape, self._coalesced, self._pattern)

    def _of_gradient(self, values: Tensor) -> Coo:
        """Each place once: elements of equal places have the same gradient, that of their sum."""
        if self._coalesced:
            return self._with(values)
        first = first_of_places(self)[1]
        if len(first) == self._nnz():
            return self._with(values)
        at = clew.from_numpy(first)
        return coo(self._ind.index_select(1, at), values.index_select(0, at), self.shape, True)

    def _known_coalesced(self) -> Coo:
        """The tensor marked as coalesced, if its places rise."""
        self._coalesced = self._coalesced or is_sorted(self)
        return self

    def _saved_parts(self) -> Any:
        leaf = self._elements.detach().requires_grad_(self.requires_grad)
        return "sparse_coo", (self._ind, leaf, tuple(self.shape), self._coalesced)

    def coalesce(self) -> Coo:
        """The tensor with its places sorted and elements of equal places added up."""
        if self._coalesced:
            return self
        ind, sizes = self._ind, tuple(self.shape[: self.sparse_dim()])
        flat = flat_places(ind, sizes)
        places, back = clew.unique(flat, return_inverse=True)
        values = self._elements
        if places.shape[0] == flat.shape[0]:
            order = back.new_empty(back.shape)
            order[back] = clew.arange(back.shape[0])
            summed = values.index_select(0, order)
        else:
            zeros = values.new_zeros((places.shape[0], *values.shape[1:]))
            if values.is_floating_point() or values.is_complex():
                zeros = -zeros  # which keep the sign of a zero that is added
            summed = zeros.index_add(0, back, values)
        return coo(spread_places(places, sizes), summed, self.shape, True)

    def pattern(self) -> Pattern:
        """Of a coalesced matrix: its compressed rows."""
        if self._pattern is None:
            rows, columns = (int(n) for n in self.shape[:2])
            counts = clew.bincount(self._ind[0], minlength=rows)
            crow = clew.cat([counts.new_zeros(1), counts.cumsum(0)])
            self._pattern = Pattern(crow, self._ind[1].contiguous(), (rows, columns))
        return self._pattern

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._text([("indices", self._ind), ("values", self._elements)])

    def _reduced(self) -> Any:
        values = self._elements
        leaf = values.requires_grad
        args = (self._ind, values.detach(), tuple(self.shape), self._coalesced, leaf)
        return _rebuild_coo, args


def of_numbers(rules: dict[str, Any]) -> dict[str, Any]:
    """Rules of products and quotients as they are where one factor is a number.

    Args:
        rules: those of any factors.
    """

    def only(name: str) -> Any:
        def rule(x: Any, y: Any) -> Any:
            if isinstance(x, Tensor) and isinstance(y, Tensor) and x.dim() and y.dim():
                return NotImplemented
            return rules[name](x, y)

        return rule

    return {name: only(name) for name in ("mul", "multiply", "div", "mul_", "div_")}


def need(x: Any, by_rows: bool, name: str) -> None:
    """Refuses a matrix of the other compressed layout."""
    if x._by_rows is not by_rows:
        wanted = "sparse_csr" if by_rows else "sparse_csc"
        raise RuntimeError(
            f"{name}: expected a tensor of layout {wanted}; got {x.layout}; convert with "
            f".to_{wanted}()"
        )


def text_of_rows(x: Any) -> str:
    """What a tensor in compressed rows or columns is printed as."""
    parts = (x._pattern.crow, x._pattern.col)
    return str(x._text([*zip(index_names(x._by_rows), parts), ("values", x._elements)]))


class Compressed(_Sparse):
    """A sparse matrix in compressed rows (CSR) or columns (CSC). Made by `clew.sparse_csr_tensor`
    and `clew.sparse_csc_tensor`.
    """

    _kind = "sparse tensors (clew.sparse_csr, clew.sparse_csc)"
    _pattern: Pattern  # of the transposed matrix where columns are compressed
    _by_rows: bool

    layout = property(lambda self: _dtypes.sparse_csr if self._by_rows else _dtypes.sparse_csc)
    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: self._by_rows)

    def crow_indices(self) -> Tensor:
        """Where each row begins, and the last one ends."""
        need(self, True, "crow_indices")
        return self._pattern.crow

    def col_indices(self) -> Tensor:
        """The column of each element."""
        need(self, True, "col_indices")
        return self._pattern.col

    def ccol_indices(self) -> Tensor:
        """Where each column begins, and the last one ends."""
        need(self, False, "ccol_indices")
        return self._pattern.crow

    def row_indices(self) -> Tensor:
        """The row of each element."""
        need(self, False, "row_indices")
        return self._pattern.col

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        """How many dims each element has."""
        return int(self._elements.dim()) - 1

    def is_coalesced(self) -> bool:
        """Whether places are named once; this layout's always are."""
        return True

    def _with(self, values: Tensor) -> Compressed:
        return compressed(self._pattern, values, self._by_rows)

    def _saved_parts(self) -> Any:
        leaf = self._elements.detach().requires_grad_(self.requires_grad)
        parts = (self._pattern.crow, self._pattern.col, leaf, tuple(self.shape))
        return "sparse_csr" if self._by_rows else "sparse_csc", parts

    def pattern(self) -> Pattern:
        """The compressed rows."""
        return self._pattern if self._by_rows else self._pattern.turned()[0]

    def row_values(self) -> Tensor:
        """The elements in the order of `pattern()`."""
        if self._by_rows:
            return self._elements
        return self._elements.index_select(0, self._pattern.turned()[1])

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return text_of_rows(self)

    def _reduced(self) -> Any:
        args = (
            self._pattern.crow,
            self._pattern.col,
            self._elements.detach(),
            tuple(self.shape),
            self._by_rows,
            self._elements.requires_grad,
        )
        return _rebuild_compressed, args


def coo(
    ind: Tensor, values: Tensor, shape: Any, coalesced: bool, pattern: Pattern | None = None
) -> Coo:
    """A tensor in coordinates of parts that fit."""
    made: Coo = Coo._over(shape, values)
    made._ind, made._coalesced, made._pattern = ind, coalesced, pattern
    return made


def compressed(pattern: Pattern, values: Tensor, by_rows: bool) -> Compressed:
    """A compressed matrix of parts that fit."""
    shape = pattern.shape if by_rows else pattern.shape[::-1]
    made: Compressed = Compressed._over((*shape, *values.shape[1:]), values)
    made._pattern, made._by_rows = pattern, by_rows
    return made


def flat_places(ind: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Coordinates as places in a row-major block."""
    flat = ind.new_zeros(ind.shape[1])
    for row, n in zip(ind.unbind(0), sizes):
        flat = flat * n + row
    return flat


def first_of_places(tensor: Coo) -> tuple[Any, Any]:
    """The places of a tensor, rising, and the first element of each; as arrays."""
    flat = flat_places(tensor._ind, tuple(tensor.shape[: tensor.sparse_dim()])).numpy()
    places, first = np.unique(flat, return_index=True)
    return places, first


def spread_places(flat: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The coordinates of places in a row-major block."""
    rows = []
    for n in reversed(sizes):
        n = max(n, 1)
        rows.append(flat % n)
        flat = flat // n
    if not rows:
        return flat.new_zeros((0, flat.shape[0]))
    return clew.stack(rows[::-1])


def index_names(by_rows: bool) -> tuple[str, str]:
    """What the two index tensors of a compressed layout are called."""
    return ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")


def is_same_pattern(a: Any, b: Any) -> bool:
    """Whether the elements of two tensors of one layout are in the same places, in order."""
    if isinstance(a, Coo):
        return a._ind is b._ind or (
            a._ind.shape == b._ind.shape and np.array_equal(a._ind.numpy(), b._ind.numpy())
        )
    if hasattr(a, "_patterns"):  # a batch
        return all(
            p is q or (p.shape == q.shape and np.array_equal(p.numpy(), q.numpy()))
            for p, q in ((a._ends, b._ends), (a._places, b._places))
        )
    p, q = a._pattern, b._pattern
    return p is q or (
        p.col.shape == q.col.shape
        and np.array_equal(p.crow.numpy(), q.crow.numpy())
        and np.array_equal(p.col.numpy(), q.col.numpy())
    )


# What pickles are made again with, by layout; clew.sparse._construct fills it.
constructors: dict[str, Callable[..., Any]] = {}


def _rebuild_coo(ind: Any, values: Any, shape: Any, coalesced: bool, requires_grad: bool) -> Coo:
    made: Coo = constructors["coo"](ind, values, shape, requires_grad=requires_grad)
    made._coalesced = bool(coalesced) and is_sorted(made)
    return made


def is_sorted(tensor: Coo) -> bool:
    """Whether places rise, which coalesced tensors keep."""
    flat = flat_places(tensor._ind, tuple(tensor.shape[: tensor.sparse_dim()])).numpy()
    return bool((flat[1:] > flat[:-1]).all())


def _rebuild_compressed(
    crow: Any, col: Any, values: Any, shape: Any, by_rows: bool, requires_grad: bool
) -> Compressed:
    make = constructors["csr" if by_rows else "csc"]
    made: Compressed = make(crow, col, values, shape, requires_grad=requires_grad)
    return made


def _sum(before: Any, grad: Any) -> Tensor:
    """The sum of two gradients, at least one of them sparse; called by the engine."""
    if before is None:
        return grad._with(grad._elements.clone())
    if isinstance(before, Coo) and isinstance(grad, Coo):
        ind = clew.cat([before._ind, grad._ind], 1)
        values = clew.cat([before._elements, grad._elements])
        return coo(ind, values, before.shape, False)
    dense, sparse = (grad, before) if isinstance(before, Coo) else (before, grad)
    return dense.index_put(tuple(sparse._ind.unbind(0)), sparse._elements, accumulate=True)


vars(_C)["_set_sparse"](Coo, _sum)
