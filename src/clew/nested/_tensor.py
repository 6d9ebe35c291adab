"""Ragged tensors: rows of different length, one behind the other in one tensor of values."""

# mypy: disable-error-code="override"
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np

import clew
from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew._tensor.structured import Structured, placeholder

__all__ = ["NestedTensor", "RaggedSize", "Rows", "is_ragged", "need_same_rows", "ragged"]

_numbers = itertools.count(1)
_C_SHAPE = vars(Tensor)["shape"]


class UnevenSize:
    """A size that differs from row to row: no number."""

    _where = "._nested_tensor_size()"

    def __index__(self, *other: object) -> int:
        raise TypeError(
            f"the size {self!r} of a ragged dim is another one in each row: see {self._where}, or "
            "make the tensor dense with .to_padded_tensor(padding)"
        )

    __int__ = __float__ = __neg__ = __index__
    __lt__ = __le__ = __gt__ = __ge__ = __index__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __index__
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __index__


class RaggedMultiple(UnevenSize):
    """So many times the size of a ragged dim: a stride, or a number of elements."""

    _where = ".offsets()"

    _size: RaggedSize
    _times: int

    def __init__(self, size: RaggedSize, times: int) -> None:
        self._size, self._times = size, times

    def __repr__(self) -> str:
        return f"{self._times}*{self._size!r}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RaggedMultiple)
            and self._times == other._times
            and self._size._rows.is_like(other._size._rows)
        )

    def __hash__(self) -> int:
        return hash((tuple(self._size._rows.counts), self._times))

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, int):
            return self.__index__()
        times = self._times * other
        return self._size if times == 1 else RaggedMultiple(self._size, times)

    __rmul__ = __mul__  # type: ignore[assignment]

    # As in PyTorch, a size of rows counts as two or more, which answers whether there is anything.

    def __ge__(self, other: Any) -> bool:
        return self._exceeds(other, 2, True)

    def __gt__(self, other: Any) -> bool:
        return self._exceeds(other, 1, False)

    def __lt__(self, other: Any) -> bool:
        return not self._exceeds(other, 2, True)

    def __le__(self, other: Any) -> bool:
        return not self._exceeds(other, 1, False)

    def _exceeds(self, other: Any, most: int, if_equal: bool) -> bool:
        if self == other:
            return if_equal
        if isinstance(other, int) and other <= most and self._times > 0:
            return True
        raise ValueError(
            f"{self!r} and {other!r}: their relation is another one in each row: see {self._where}"
        )


class RaggedSize(RaggedMultiple):
    """The size of a ragged dim: another one in each row. Tensors of equal rows made from one
    another share it, and shapes for `view`, `reshape` and `expand` may contain it.
    """

    _times = 1
    _size = property(lambda self: self)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._number = next(_numbers)

    def __repr__(self) -> str:
        return f"j{self._number}"


class _Shape(tuple[Any, ...]):
    """The sizes of a ragged tensor; that of the ragged dim is a `RaggedSize`."""

    def __repr__(self) -> str:
        return f"{_dtypes.home}.Size({list(self)})"

    def __getitem__(self, key: Any) -> Any:
        got = super().__getitem__(key)
        return type(self)(got) if isinstance(key, slice) else got

    def numel(self) -> int:
        rows = next(s._rows for s in self if isinstance(s, RaggedSize))
        others = [s for s in self[1:] if not isinstance(s, RaggedSize)]
        return int(np.prod(others, dtype=np.int64)) * sum(rows.counts)


class Rows:
    """Where each row begins and how long it is. What is derived from it is kept: the tensors that
    operations make share it.

    Attributes:
        offsets: (rows + 1) int64, where each row begins; without lengths also where it ends.
        lengths: (rows) int64 where rows do not end at the next one's beginning, or None.
    """

    def __init__(self, offsets: Tensor, lengths: Tensor | None = None) -> None:
        self.offsets, self.lengths = offsets, lengths
        places = offsets.numpy()
        found = np.diff(places) if lengths is None else lengths.numpy()
        self.starts: list[int] = places[:-1].tolist()
        self.counts: list[int] = found.tolist()
        self.longest = int(found.max()) if len(found) else 0
        self._size: RaggedSize | None = None
        self._ids: Tensor | None = None
        self._positions: Tensor | None = None
        self._packed: tuple[Rows, Tensor] | None = None

    @classmethod
    def of_counts(cls, counts: Any) -> Rows:
        """Rows one behind the other."""
        return cls(clew.from_numpy(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)))

    @property
    def size(self) -> RaggedSize:
        if self._size is None:
            self._size = RaggedSize(self)
        return self._size

    def is_like(self, other: Rows) -> bool:
        """Whether each row is as long as the other's."""
        return self is other or self.counts == other.counts

    def ids(self) -> Tensor:
        """Of rows one behind the other: the row of each element, int64."""
        if self._ids is None:
            made = np.repeat(np.arange(len(self.counts)), self.counts)
            self._ids = clew.from_numpy(made)
        return self._ids

    def positions(self) -> Tensor:
        """Of rows one behind the other: the place of each element in its row, int64."""
        if self._positions is None:
            starts = np.repeat(self.starts, self.counts)
            made = np.arange(sum(self.counts)) - starts.astype(np.int64)
            self._positions = clew.from_numpy(made)
        return self._positions

    def packed(self) -> tuple[Rows, Tensor]:
        """The same rows one behind the other, and the place here of each of their elements."""
        if self._packed is None:
            rows = Rows.of_counts(self.counts)
            starts = np.repeat(np.asarray(self.starts, np.int64), self.counts)
            rows._size = self.size
            self._packed = rows, clew.from_numpy(starts + rows.positions().numpy())
        return self._packed


class NestedTensor(Structured):
    """A ragged tensor: a batch of tensors that differ in the size of one dim. Made by
    `clew.nested.nested_tensor` and its like.
    """

    _kind = "ragged tensors (clew.jagged)"
    _remedy = ".to_padded_tensor(padding), or work on the rows of .unbind() or on .values()"
    _rows: Rows
    _at: int  # the ragged dim
    _mapped_by_length: ClassVar[Callable[..., Any]]  # clew.nested._vmap fills it

    layout = property(lambda self: _dtypes.jagged)
    is_nested = property(lambda self: True)
    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: False)
    _ragged_idx = property(lambda self: self._at)

    # ---- parts ----

    def values(self) -> Tensor:
        """The elements of all rows, one behind the other, in one tensor without the batch dim."""
        return self._elements

    def offsets(self) -> Tensor:
        """(rows + 1) int64: where each row begins in `values()`, and the last one ends."""
        return self._rows.offsets

    def lengths(self) -> Tensor | None:
        """(rows) int64 where rows have gaps between them; None where the offsets say it all."""
        return self._rows.lengths

    @property
    def _values(self) -> Tensor:
        return self._elements

    @property
    def _offsets(self) -> Tensor:
        return self._rows.offsets

    @property
    def _lengths(self) -> Tensor | None:
        return self._rows.lengths

    @property
    def _max_seqlen(self) -> int:
        return self._rows.longest

    @property
    def _min_seqlen(self) -> int:
        return min(self._rows.counts, default=0)

    def _get_max_seqlen(self) -> int:
        return self._max_seqlen

    def _get_min_seqlen(self) -> int:
        return self._min_seqlen

    def _nested_tensor_size(self) -> Tensor:
        """(rows, dims without the batch) int64: the size of each row."""
        counts = clew.tensor(self._rows.counts, dtype=_C.int64)
        others = self._elements.shape
        columns = [
            counts if d == self._at - 1 else clew.full_like(counts, int(n))
            for d, n in enumerate(others)
        ]
        return clew.stack(columns, 1)

    def packed(self) -> NestedTensor:
        """The tensor without gaps between its rows."""
        if self._rows.lengths is None:
            return self
        rows, places = self._rows.packed()
        return ragged(rows, self._elements.index_select(self._at - 1, places), self._at)

    def row_values(self) -> list[Tensor]:
        """The rows: views of `values()`."""
        rows, dim = self._rows, self._at - 1
        if rows.lengths is None:
            return list(self._elements.split(rows.counts, dim)) if rows.counts else []
        return [self._elements.narrow(dim, s, n) for s, n in zip(rows.starts, rows.counts)]

    def by_row(self, function: Any) -> NestedTensor:
        """What a function that keeps the rows' lengths makes of each row."""
        x = self.packed()
        made = [function(row) for row in x.row_values()]
        return ragged(x._rows, clew.cat(made, x._at - 1) if made else x._elements, x._at)

    def _with(self, values: Tensor) -> NestedTensor:
        return ragged(self._rows, values, self._at)

    def _saved_parts(self) -> Any:
        leaf = self._elements.detach().requires_grad_(self.requires_grad)
        return "jagged", (leaf, self._rows.offsets, self._rows.lengths, self._at)

    def _has_places_of(self, other: Any) -> bool:
        if not isinstance(other, NestedTensor) or other._at != self._at:
            return False
        same = self._rows.starts == other._rows.starts and self._rows.is_like(other._rows)
        return same and tuple(self._elements.shape) == tuple(other._elements.shape)

    # ---- sizes ----

    def _sizes(self) -> tuple[int, ...]:
        """The placeholder's: those of the batch padded to its longest row."""
        return tuple(_C_SHAPE.__get__(self))

    def _placeholder(self) -> Tensor:
        return placeholder(self._sizes(), self.dtype)

    @property
    def shape(self) -> Any:
        sizes: list[Any] = list(self._sizes())
        sizes[self._at] = self._rows.size
        return _Shape(sizes)

    def size(self, dim: int | None = None) -> Any:
        """The sizes, or that of one dim.

        Args:
            dim: which one; all without it.
        """
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """The steps of the dims in memory, or that of one; the batch's is a multiple of the
        ragged size.

        Args:
            dim: which one; all without it.
        """
        steps = self._elements.stride()
        every = (self._rows.size * steps[self._at - 1], *steps)
        return every if dim is None else every[dim]

    def numel(self) -> int:
        """How many elements the rows have."""
        if self._rows.lengths is None:
            return int(self._elements.numel())
        return int(self.shape.numel())

    nelement = numel

    @property
    def nbytes(self) -> int:
        return self.numel() * int(self._elements.element_size())

    @property
    def mT(self) -> Any:
        return self.transpose(-2, -1)

    @property
    def T(self) -> Any:
        self._refuse("T")

    @property
    def mH(self) -> Any:
        return self.adjoint()

    @property
    def real(self) -> Any:
        return ragged(self._rows, self._elements.real, self._at)

    @property
    def imag(self) -> Any:
        return ragged(self._rows, self._elements.imag, self._at)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self._rows.lengths is None and bool(self._elements.is_contiguous())

    def contiguous(self, memory_format: Any = None) -> Any:
        if self.is_contiguous():
            return self
        x = self.packed()
        return ragged(x._rows, x._elements.contiguous(), x._at)

    # ---- printing and copies ----

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        parts = [("offsets", self._rows.offsets), ("lengths", self._rows.lengths)]
        lines = []
        for name, part in [*parts, ("values", self._elements.detach())]:
            if part is not None:
                lines.append(f"{name}={part!r}".replace("\n", "\n" + " " * (len(name) + 14)))
        more = f"size={tuple(self.shape)}"
        if self.grad_fn is not None:
            more += f", grad_fn=<{self.grad_fn.name()}>"
        elif self.requires_grad:
            more += ", requires_grad=True"
        return "NestedTensor(" + (",\n" + " " * 13).join([*lines, more]) + ")"

    def _reduced(self) -> Any:
        rows, values = self._rows, self._elements
        args = (values.detach(), rows.offsets, rows.lengths, self._at, bool(values.requires_grad))
        return _rebuild, args

    @classmethod
    def _refuse(cls, name: str) -> NoReturn:
        raise NotImplementedError(
            f"{name}: there is no rule for {cls._kind} with these arguments; convert with "
            f"{cls._remedy}"
        )


def ragged(rows: Rows, values: Tensor, at: int = 1) -> NestedTensor:
    """A ragged tensor of parts that fit."""
    sizes = [len(rows.counts), *values.shape]
    sizes[at] = rows.longest
    made: NestedTensor = NestedTensor._over(sizes, values)
    made._rows, made._at = rows, at
    return made


def is_ragged(x: Any) -> bool:
    """Whether something is a ragged tensor."""
    return isinstance(x, NestedTensor)


def need_same_rows(name: str, tensors: Any) -> None:
    """Raises unless ragged tensors have the same dims and rows of the same lengths."""
    first = tensors[0]
    for x in tensors[1:]:
        if x._at != first._at or not x._rows.is_like(first._rows):
            raise RuntimeError(
                f"{name}: ragged tensors must have rows of the same lengths, in the same dim; got "
                f"shapes {list(first.shape)} and {list(x.shape)} with offsets "
                f"{_short(first._rows)} and {_short(x._rows)}"
            )


def _short(rows: Rows) -> str:
    places = rows.offsets.tolist()
    return str(places if len(places) < 10 else [*places[:4], "...", *places[-2:]])


# What pickles are made again with; clew.nested._construct fills it.
constructors: dict[str, Callable[..., Any]] = {}


def _rebuild(values: Any, offsets: Any, lengths: Any, at: int, requires_grad: bool) -> NestedTensor:
    leaf = values.requires_grad_(requires_grad)
    made: NestedTensor = constructors["jagged"](leaf, offsets, lengths, jagged_dim=at)
    return made
