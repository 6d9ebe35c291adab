"""Attention with scores and masks given as functions of the indices."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import clew
from clew import Tensor

# Queries and keys of a block where nothing else is said.
_DEFAULT_SPARSE_BLOCK_SIZE = 128

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_Mask = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_Score = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

FlexKernelOptions = dict  # settings of kernels that do not exist here


class AuxRequest(NamedTuple):
    """What flex_attention shall return besides its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What flex_attention returned besides its result; None for what was not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that lets everything be seen.

    Args:
        batch: which sample.
        head: which head.
        token_q: place of the query.
        token_kv: place of the key.

    Returns:
        True.

    >>> zero = clew.tensor(0)
    >>> clew.nn.attention.flex_attention.noop_mask(zero, zero, zero, zero)
    tensor(True)
    """
    return clew.ones((), dtype=clew.bool)


def and_masks(*mask_mods: _Mask) -> _Mask:
    """The mask function that is true where all given ones are.

    Args:
        mask_mods: functions of (batch, head, query index, key index).

    >>> flex = clew.nn.attention.flex_attention
    >>> causal = lambda b, h, q, k: q >= k
    >>> near = lambda b, h, q, k: q - k < 2
    >>> both = flex.and_masks(causal, near)
    >>> both(0, 0, clew.tensor(3), clew.tensor(0))
    tensor(False)
    """
    _check_callables("and_masks", mask_mods)

    def both(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        out = clew.ones((), dtype=clew.bool)
        for mod in mask_mods:
            out = out & mod(b, h, q_idx, kv_idx)
        return out

    return both


def or_masks(*mask_mods: _Mask) -> _Mask:
    """The mask function that is true where any given one is.

    Args:
        mask_mods: functions of (batch, head, query index, key index).

    >>> flex = clew.nn.attention.flex_attention
    >>> first = lambda b, h, q, k: k == 0
    >>> near = lambda b, h, q, k: q - k < 2
    >>> either = flex.or_masks(first, near)
    >>> either(0, 0, clew.tensor(3), clew.tensor(0))
    tensor(True)
    """
    _check_callables("or_masks", mask_mods)

    def either(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        out = clew.zeros((), dtype=clew.bool)
        for mod in mask_mods:
            out = out | mod(b, h, q_idx, kv_idx)
        return out

    return either


def _check_callables(name: str, mods: tuple[Any, ...]) -> None:
    if not all(callable(m) for m in mods):
        raise RuntimeError(f"{name}: all arguments must be functions; got {mods}")


def _indices(*sizes: int) -> list[Tensor]:
    """An index tensor for each dimension, shaped so that they broadcast to all of it."""
    n = len(sizes)
    return [
        clew.arange(size).reshape([size if d == k else 1 for d in range(n)])
        for k, size in enumerate(sizes)
    ]


def create_mask(
    mod_fn: Any,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The whole tensor that a mask function (or a score function, of zero scores) makes.

    Args:
        mod_fn: a function of (batch, head, query index, key index), or of a score before them.
        B: batch size; None counts as 1.
        H: heads; None counts as 1.
        Q_LEN: queries.
        KV_LEN: keys.
        device: where it lives.

    Returns: (B, H, Q_LEN, KV_LEN), of bool for a mask.

    >>> from clew.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, 1, 1, 2, 2)[0, 0].tolist()
    [[True, False], [True, True]]
    """
    if device is not None:
        clew.empty(0, device=device)  # says so when there is no such device
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    takes = sum(
        p.default is p.empty
        for p in inspect.signature(mod_fn).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    )
    if takes == 5:
        return clew.as_tensor(mod_fn(clew.zeros(sizes), *_indices(*sizes))).expand(sizes).clone()
    found = clew.as_tensor(mod_fn(*_indices(*sizes)))
    return found.to(clew.bool).expand(sizes).clone()


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row are set, and their indices, those set first."""
    counts = blocks.sum(-1).to(clew.int32)
    order = clew.argsort(blocks.to(clew.int32), dim=-1, descending=True, stable=True)
    return counts, order.to(clew.int32)


def _dense(counts: Tensor | None, indices: Tensor | None, columns: int) -> Tensor | None:
    """The reverse of _ordered."""
    if counts is None or indices is None:
        return None
    used = clew.arange(indices.shape[-1]) < counts.unsqueeze(-1)
    out = clew.zeros(*indices.shape[:-1], columns + 1, dtype=clew.bool)
    place = clew.where(used, indices.to(clew.int64), columns)
    return out.scatter(-1, place, True)[..., :columns]


class BlockMask:
    """A mask in blocks: which are seen in part (there the function decides) and which as a whole.

    Args:
        seq_lengths: queries and keys.
        kv_num_blocks: (B, H, rows), how many blocks of each row are seen in part.
        kv_indices: (B, H, rows, columns), which.
        full_kv_num_blocks: the same for blocks that are seen as a whole.
        full_kv_indices: see there.
        q_num_blocks: the same four by columns.
        q_indices: see there.
        full_q_num_blocks: see there.
        full_q_indices: see there.
        BLOCK_SIZE: queries and keys of a block.
        mask_mod: the function of (batch, head, query index, key index).

    Example:
        >>> flex = clew.nn.attention.flex_attention
        >>> causal = lambda b, h, q, k: q >= k
        >>> mask = flex.create_block_mask(causal, None, None, 256, 256, device="cpu")
        >>> isinstance(mask, flex.BlockMask), mask.shape
        (True, (1, 1, 256, 256))
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (128, 128),
        mask_mod: _Mask = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError(
                f"BlockMask: kv_indices must have at least 2 dimensions; got {kv_indices.dim()}"
            )
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "BlockMask: full_kv_num_blocks and full_kv_indices must be given together"
            )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: _Mask | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """Makes a mask from the blocks of each row.

        Args:
            kv_num_blocks: (B, H, rows), how many blocks of each row are seen in part.
            kv_indices: (B, H, rows, columns), which.
            full_kv_num_blocks: the same for blocks that are seen as a whole.
            full_kv_indices: see there.
            BLOCK_SIZE: queries and keys of a block.
            mask_mod: the function; True everywhere by default.
            seq_lengths: queries and keys; whole blocks by default.
            compute_q_blocks: also list the blocks by columns.

        Returns:
            A BlockMask.
        """
        size = _pair(BLOCK_SIZE)
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "BlockMask: full_kv_num_blocks and full_kv_indices must be given together"
            )
        columns = kv_indices.shape[-1]
        sides: list[Any] = [None] * 4
        if compute_q_blocks:
            partial = _dense(kv_num_blocks, kv_indices, columns)
            full = _dense(full_kv_num_blocks, full_kv_indices, columns)
            assert partial is not None
            sides[:2] = _ordered(partial.transpose(-2, -1))
            if full is not None:
                sides[2:] = _ordered(full.transpose(-2, -1))
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], columns * size[1])
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            sides[0],
            sides[1],
            sides[2],
            sides[3],
            size,
            mask_mod or noop_mask,
        )

    def _tensors(self) -> list[Tensor | None]:
        return [
            self.kv_num_blocks,
            self.kv_indices,
            self.full_kv_num_blocks,
            self.full_kv_indices,
            self.q_num_blocks,
            self.q_indices,
            self.full_q_num_blocks,
            self.full_q_indices,
        ]

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Sequence lengths, tensors, block size and function as a tuple.

        Args:
            flatten: put pairs in as two numbers.

        Returns:
            The tuple: with `flatten` 2 lengths, the tensors, 2 block sizes and the function.
        """
        lengths: tuple[Any, ...] = self.seq_lengths if flatten else (self.seq_lengths,)
        size: tuple[Any, ...] = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *self._tensors(), *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def __getitem__(self, index: Any) -> BlockMask:
        index = index if isinstance(index, tuple) else (index,)
        # A number keeps its dimension: the mask stays (B, H, ...).
        index = tuple(slice(i, i + 1) if isinstance(i, int) and i != -1 else i for i in index)
        index = tuple(slice(-1, None) if isinstance(i, int) else i for i in index)
        kept = [None if t is None else t[index] for t in self._tensors()[:4]]
        assert kept[0] is not None and kept[1] is not None
        return BlockMask.from_kv_blocks(
            kept[0],
            kept[1],
            kept[2],
            kept[3],
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def numel(self) -> int:
        """How many elements the whole mask has."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """(B, H, rows, columns) of int: 1 where a block is seen, in part or as a whole."""
        columns = self.kv_indices.shape[-1]
        out = _dense(self.kv_num_blocks, self.kv_indices, columns)
        full = _dense(self.full_kv_num_blocks, self.full_kv_indices, columns)
        assert out is not None
        return (out if full is None else out | full).to(clew.int32)

    def sparsity(self) -> float:
        """The part of the mask that lies in no seen block, in percent.

        Blocks count as a whole, so that it is less than 0 when they reach beyond the mask.
        """
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - blocks * math.prod(self.BLOCK_SIZE) / max(self.numel(), 1))

    def to(self, device: Any) -> BlockMask:
        """The mask on a device.

        Args:
            device: where to.
        """
        a, b, c, d, e, f, g, h = (None if t is None else t.to(device) for t in self._tensors())
        assert a is not None and b is not None
        return BlockMask(self.seq_lengths, a, b, c, d, e, f, g, h, self.BLOCK_SIZE, self.mask_mod)

    def _allowed(self, batch: int, heads: int, queries: int, keys: int) -> Tensor:
        """The whole mask: (B or 1, H or 1, queries, keys)."""
        columns = self.kv_indices.shape[-1]
        rows, cols = ((clew.arange(n) // size) for n, size in zip((queries, keys), self.BLOCK_SIZE))

        def spread(blocks: Tensor) -> Tensor:
            return blocks.index_select(-2, rows).index_select(-1, cols)

        partial = _dense(self.kv_num_blocks, self.kv_indices, columns)
        full = _dense(self.full_kv_num_blocks, self.full_kv_indices, columns)
        assert partial is not None
        found = clew.as_tensor(self.mask_mod(*_indices(batch, heads, queries, keys)))
        allowed = spread(partial) & found.to(clew.bool)
        return allowed if full is None else allowed | spread(full)

    def to_string(self, grid_size: int | tuple[int, int] = 20, limit: int = 4) -> str:
        """A drawing of the blocks: a full block, half a one where seen in part, nothing else.

        Args:
            grid_size: rows and columns of the drawing at most; -1 for all.
            limit: how many masks of the batch are drawn.
        """
        columns = self.kv_indices.shape[-1]
        partial = _dense(self.kv_num_blocks, self.kv_indices, columns)
        full = _dense(self.full_kv_num_blocks, self.full_kv_indices, columns)
        assert partial is not None
        weight = partial.float() * 0.5
        if full is not None:
            weight = weight + full.float()
        shape = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        down, across = (
            n if want == -1 else min(n, want) for n, want in zip(weight.shape[-2:], shape)
        )
        small = clew.nn.functional.adaptive_avg_pool2d(
            weight.reshape(-1, 1, *weight.shape[-2:]), (down, across)
        )
        parts = []
        for drawing in small[:limit, 0].tolist():
            lines = ("".join("  ░░▒▒▓▓██"[2 * round(4 * v) :][:2] for v in row) for row in drawing)
            parts.append("\n".join(lines))
        if len(small) > limit:
            parts.append("...")
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: _Mask,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    *,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """The blocks of a mask function.

    Args:
        mask_mod: a function of (batch, head, query index, key index).
        B: batch size; None for a mask that is the same for all.
        H: heads; None likewise.
        Q_LEN: queries.
        KV_LEN: keys.
        device: where it lives.
        BLOCK_SIZE: queries and keys of a block.
        separate_full_blocks: list blocks that are seen as a whole apart from the others.

    >>> from clew.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256)
    >>> mask.to_dense()[0, 0].tolist()
    [[1, 0], [1, 1]]
    """
    size = _pair(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    if mask.dtype is not clew.bool:
        raise RuntimeError("create_block_mask: mask_mod must be a mask, not a score function")
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    padded = clew.nn.functional.pad(
        mask, (0, columns * size[1] - KV_LEN, 0, rows * size[0] - Q_LEN), value=False
    )
    blocks = padded.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).transpose(-2, -3)
    seen = blocks.to(clew.int64).sum((-2, -1))
    full = seen == size[0] * size[1]
    partial = (seen > 0) & ~full if separate_full_blocks else seen > 0
    counts, indices = _ordered(partial)
    whole = _ordered(full) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(
        counts,
        indices,
        whole[0],
        whole[1],
        BLOCK_SIZE=size,
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _Score | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention whose scores a function changes and whose mask is given by blocks.

    The functions get tensors of indices that broadcast to (B, H, L, S), and index other tensors
    with them as if they were numbers.

    Args:
        query: (B, Hq, L, E).
        key: (B, H, S, E); a batch of 1 serves all.
        value: (B, H, S, Ev).
        score_mod: a function of (score, batch, head, query index, key index).
        block_mask: which keys each query sees.
        scale: factor of the scores; 1 / sqrt(E) by default.
        enable_gqa: Hq may be a multiple of H: consecutive query heads share keys and values.
        return_lse: also return the logarithm of the sum of exponentials of the scores.
        kernel_options: settings of kernels; the one here has none.
        return_aux: what else to return, in an AuxOutput.

    Returns: (B, Hq, L, Ev), with what was asked for besides.

    >>> from clew.nn.attention.flex_attention import flex_attention
    >>> x = clew.ones(1, 1, 2, 3)
    >>> def causal(score, b, h, q, k):
    ...     return clew.where(q >= k, score, -clew.inf)
    >>> flex_attention(x, x, clew.arange(6.0).reshape(1, 1, 2, 3), causal)[0, 0]
    tensor([[0.0000, 1.0000, 2.0000],
            [1.5000, 2.5000, 3.5000]])
    """
    _check_inputs(query, key, value, enable_gqa)
    batch, heads, queries, width = query.shape
    keys = key.shape[-2]
    if block_mask is not None:
        _check_mask(block_mask, batch, heads, queries, keys)
    share = heads // key.shape[1] if key.shape[1] else 1
    if share > 1:
        key, value = (t.repeat_interleave(share, 1) for t in (key, value))
    factor = 1 / math.sqrt(width) if scale is None else scale
    work = clew.float32 if query.dtype in (clew.float16, clew.bfloat16) else query.dtype
    scores = (query.to(work) @ key.to(work).transpose(-2, -1)) * factor
    if score_mod is not None:
        places = _indices(batch, heads, queries, keys)
        scores = score_mod(scores, *places).to(work).expand(batch, heads, queries, keys)
    if block_mask is not None:
        allowed = block_mask._allowed(batch, heads, queries, keys)
        scores = clew.where(allowed, scores, -math.inf)
    top = scores.detach().amax(-1, keepdim=True) if keys else scores.new_zeros(1)
    # A query that sees nothing gets zeros, and no NaN reaches a gradient.
    safe = clew.where(top == -math.inf, 0.0, top)
    weights = clew.exp(scores - safe)
    total = weights.sum(-1, keepdim=True)
    unseen = total == 0
    result = (weights @ value.to(work)) / clew.where(unseen, 1.0, total)
    result = result.to(query.dtype)
    if not return_lse and return_aux is None:
        return result
    lse = clew.where(unseen, -math.inf, clew.where(unseen, 1.0, total).log() + safe).squeeze(-1)
    if return_aux is None:
        return result, lse
    largest = scores.amax(-1) if return_aux.max_scores else None
    return result, AuxOutput(lse if return_aux.lse else None, largest)


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    given = f"got {list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError(f"flex_attention: query, key and value must be 4-D; {given}")
    if not query.dtype is key.dtype is value.dtype:
        raise ValueError(
            "flex_attention: query, key and value must have one dtype; got "
            f"{query.dtype}, {key.dtype} and {value.dtype}"
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"flex_attention: query and key must have one width; {given}")
    if key.shape[-2] != value.shape[-2] or key.shape[1] != value.shape[1]:
        raise ValueError(f"flex_attention: key and value must have one length; {given}")
    if key.shape[0] not in (1, query.shape[0]) or key.shape[0] != value.shape[0]:
        raise ValueError(f"flex_attention: batch sizes must agree; {given}")
    if query.shape[1] != key.shape[1]:
        if not enable_gqa:
            raise ValueError(
                f"flex_attention: query and key must have as many heads (or enable_gqa); {given}"
            )
        if not key.shape[1] or query.shape[1] % key.shape[1]:
            raise ValueError(
                f"flex_attention: the query's heads must be a multiple of the key's; {given}"
            )


def _check_mask(mask: BlockMask, batch: int, heads: int, queries: int, keys: int) -> None:
    b, h, q, k = mask.shape
    if b not in (1, batch) or h not in (1, heads):
        raise ValueError(
            f"flex_attention: the mask must be for {batch} or 1 in the batch and {heads} or 1 "
            f"heads; got {mask.shape}"
        )
    if queries > q or keys > k:
        raise ValueError(
            f"flex_attention: the mask is for {q} queries and {k} keys; got {queries} and {keys}"
        )
