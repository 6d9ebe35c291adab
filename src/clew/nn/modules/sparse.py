"""Embedding tables."""

from __future__ import annotations

from typing import Any

import clew

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._shortcut import one_call
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]

_embedding = clew._C.ops._embedding


def _row(padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError(
            f"Embedding: Padding_idx must be within num_embeddings, {rows}; got {padding_idx}"
        )
    return padding_idx % rows


def _table(weight: Any, rows: int, width: int, frozen: bool, device: Any, dtype: Any) -> Any:
    if weight is None:
        empty = clew.empty((rows, width), device=device, dtype=dtype)
        return Parameter(empty, requires_grad=not frozen)
    if tuple(weight.shape) != (rows, width):
        raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
    return Parameter(weight, requires_grad=not frozen)


class Embedding(Module):
    """A table of vectors looked up by index: weight[input].

    Args:
        num_embeddings: rows of the table; indices are less.
        embedding_dim: size of each row.
        padding_idx: a row of zeros that gets no gradient.
        max_norm: rows that are looked up are first scaled down to this norm, in place.
        norm_type: that norm's order.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up in the batch.
        sparse: whether the table gets a sparse gradient, of the rows that were looked up.
        device: where the table lives.
        dtype: what it holds.

    Shapes:
        input: any shape, integers in [0, num_embeddings).
        returns: (*input's shape, embedding_dim).
        weight: (num_embeddings, embedding_dim).

    Raises:
        AssertionError: for a padding_idx out of the table.

    Example:
        >>> tuple(clew.nn.Embedding(10, 3)(clew.tensor([[1, 2], [4, 5]])).shape)
        (2, 2, 3)
        >>> table = clew.nn.Embedding.from_pretrained(clew.tensor([[0., 1.], [2., 3.]]))
        >>> table(clew.tensor([1, 1])).tolist()
        [[2.0, 3.0], [2.0, 3.0]]
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    weight: Any

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _row(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.weight = _table(_weight, num_embeddings, embedding_dim, _freeze, device, dtype)
        if _weight is None:
            self.reset_parameters()
        self.sparse = sparse

    def reset_parameters(self) -> None:
        """Draws the table anew from the normal distribution."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with clew.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @one_call(
        _embedding,
        "weight",
        "input",
        unset=("padding_idx", "max_norm", "scale_grad_by_freq", "sparse"),
    )
    def forward(self, input: Any) -> Any:
        plain = self.padding_idx is None and self.max_norm is None
        if plain and not self.scale_grad_by_freq and not self.sparse:
            return _embedding(self.weight, input)
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        if self.sparse is not False:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding of a given table.

        Args:
            embeddings: the table, (rows, features).
            freeze: do not train it.
            padding_idx: as in Embedding.
            max_norm: as in Embedding.
            norm_type: as in Embedding.
            scale_grad_by_freq: as in Embedding.
            sparse: as in Embedding.

        Returns:
            the module.
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        return cls(
            num_embeddings=rows,
            embedding_dim=width,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of rows of a table.

    Args:
        num_embeddings: rows of the table; indices are less.
        embedding_dim: size of each row.
        max_norm: rows that are looked up are first scaled down to this norm, in place.
        norm_type: that norm's order.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up in the batch.
        mode: "sum", "mean" or "max" of the rows of a bag.
        sparse: whether the table gets a sparse gradient, of the rows that were looked up.
        include_last_offset: offsets end with the total length.
        padding_idx: an index that counts nothing; a row of zeros at the start.
        device: where the table lives.
        dtype: what it holds.

    Shapes:
        input: (N, L), N bags of L indices; or (L), all bags one after the other, with offsets.
        offsets: (N), where each bag starts; (N + 1) with include_last_offset.
        per_sample_weights: input's shape, factors of the rows, with mode="sum".
        returns: (N, embedding_dim).
        weight: (num_embeddings, embedding_dim).

    Raises:
        AssertionError: for a padding_idx out of the table.
        ValueError: in forward, for another mode, or offsets that do not go with input.

    Example:
        >>> table = clew.tensor([[0., 1.], [2., 3.]])
        >>> bag = clew.nn.EmbeddingBag.from_pretrained(table, mode="sum")
        >>> bag(clew.tensor([[0, 1], [1, 1]])).tolist()
        [[2.0, 4.0], [4.0, 6.0]]
        >>> bag(clew.tensor([0, 1, 1]), clew.tensor([0, 1])).tolist()
        [[0.0, 1.0], [4.0, 6.0]]
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    weight: Any

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _row(padding_idx, num_embeddings)
        self.weight = _table(_weight, num_embeddings, embedding_dim, False, device, dtype)
        if _weight is None:
            self.reset_parameters()
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self) -> None:
        """Draws the table anew from the normal distribution."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with clew.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag of a given table.

        Args:
            embeddings: the table, (rows, features).
            freeze: do not train it.
            max_norm: as in EmbeddingBag.
            norm_type: as in EmbeddingBag.
            scale_grad_by_freq: as in EmbeddingBag.
            mode: as in EmbeddingBag.
            sparse: as in EmbeddingBag.
            include_last_offset: as in EmbeddingBag.
            padding_idx: as in EmbeddingBag.

        Returns:
            the module.
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        made = cls(
            num_embeddings=rows,
            embedding_dim=width,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad = not freeze
        return made
