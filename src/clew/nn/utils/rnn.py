"""Sequences of different lengths: packing, padding and back."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import clew
from clew._base.arguments import need_bools

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence(
    namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])
):
    """A batch of sequences without padding: the elements of each time step one after the other.

    Args:
        data: all elements, (sum of the lengths, ...).
        batch_sizes: int64, (T): how many sequences reach each time step.
        sorted_indices: int64, (N): the batch's order by falling length, or None.
        unsorted_indices: int64, (N): the way back; made of sorted_indices if None.

    Example:
        >>> packed = clew.nn.utils.rnn.pack_sequence([clew.tensor([1, 2]), clew.tensor([3])])
        >>> packed.data.tolist(), packed.batch_sizes.tolist()
        ([1, 3, 2], [2, 1])
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, list | tuple) and len(data) == 2):
                raise ValueError("PackedSequence: give data and batch_sizes")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Converts data as Tensor.to does.

        Args:
            args: as for Tensor.to.
            kwargs: as for Tensor.to.

        Returns:
            a PackedSequence.
        """
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def _with(self, data: Any) -> PackedSequence:
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def cpu(self) -> PackedSequence:
        """The same on the CPU."""
        return self._with(self.data.cpu())

    def pin_memory(self) -> PackedSequence:
        """Itself, unchanged: no device would read from pinned memory."""
        return self

    def is_pinned(self) -> bool:
        """Always False."""
        return False

    @property
    def is_cuda(self) -> bool:
        """Always False."""
        return False

    def double(self) -> PackedSequence:
        """With data in float64."""
        return self.to(clew.float64)

    def float(self) -> PackedSequence:
        """With data in float32."""
        return self.to(clew.float32)

    def half(self) -> PackedSequence:
        """With data in float16."""
        return self.to(clew.float16)

    def long(self) -> PackedSequence:
        """With data in int64."""
        return self.to(clew.int64)

    def int(self) -> PackedSequence:
        """With data in int32."""
        return self.to(clew.int32)

    def short(self) -> PackedSequence:
        """With data in int16."""
        return self.to(clew.int16)

    def char(self) -> PackedSequence:
        """With data in int8."""
        return self.to(clew.int8)

    def byte(self) -> PackedSequence:
        """With data in uint8."""
        return self.to(clew.uint8)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Raises: there is no CUDA device here."""
        return self._with(self.data.cuda(*args, **kwargs))


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes another.

    Args:
        permutation: a 1-d integer tensor, (N), or None.

    Returns:
        its inverse, (N), or None.

    Example:
        >>> clew.nn.utils.rnn.invert_permutation(clew.tensor([2, 0, 1])).tolist()
        [1, 2, 0]
    """
    if permutation is None:
        return None
    return permutation.argsort()


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Takes the padding out of a batch.

    Args:
        input: (T, N, ...) or, with batch_first, (N, T, ...).
        lengths: (N), the length of each sequence, from 1 to T.
        batch_first: see input.
        enforce_sorted: the lengths fall; otherwise the batch is sorted here.

    Returns:
        a PackedSequence.

    Raises:
        RuntimeError: if lengths do not fit input, or do not fall with enforce_sorted.

    Example:
        >>> x = clew.tensor([[1, 2], [3, 0]])
        >>> clew.nn.utils.rnn.pack_padded_sequence(x, [2, 1], batch_first=True).data.tolist()
        [1, 3, 2]
    """
    need_bools("pack_padded_sequence", batch_first=batch_first)
    lengths = clew.as_tensor(lengths, dtype=clew.int64).detach()
    order = None
    if not enforce_sorted:
        lengths, order = clew.sort(lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    count = input.shape[1] if input.dim() > 1 else 0
    if lengths.dim() != 1 or input.dim() < 2 or lengths.shape[0] != count:
        raise RuntimeError(
            f"pack_padded_sequence: Expected `len(lengths)` to be equal to batch_size, but got "
            f"{lengths.numel()} "
            f"(batch_size={count})"
        )
    if count == 0:
        raise RuntimeError(
            "pack_padded_sequence: Cannot pack empty tensors; the batch has no sequences"
        )
    if int(lengths.min()) <= 0:
        raise RuntimeError(
            "pack_padded_sequence: Length of all samples has to be greater than 0, but found an "
            f"element in 'lengths' that is <= 0: {int(lengths.min())}"
        )
    if order is None and bool((lengths[1:] > lengths[:-1]).any()):
        raise RuntimeError(
            "pack_padded_sequence: `lengths` array must be sorted in decreasing order when "
            "`enforce_sorted` is True; "
            "pass enforce_sorted=False to have the batch sorted"
        )
    steps = int(lengths[0])
    if steps > input.shape[0]:
        raise RuntimeError(
            f"pack_padded_sequence: Expected lengths of at most {input.shape[0]}, input's "
            f"length; got {steps}"
        )
    live = clew.arange(steps).unsqueeze(1) < lengths.unsqueeze(0)
    where = live.reshape(-1).nonzero().reshape(-1)
    flat = input[:steps].reshape(steps * input.shape[1], *input.shape[2:])
    return PackedSequence(flat.index_select(0, where), live.sum(1), order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """Puts the padding back into a PackedSequence.

    Args:
        sequence: the batch.
        batch_first: give (N, T, ...) instead of (T, N, ...).
        padding_value: what fills the rest, cut to data's dtype.
        total_length: pad to this length; None is the longest sequence's.

    Returns:
        (padded batch, lengths): (T, N, ...) of data's dtype, and int64 (N).

    Raises:
        ValueError: if total_length is less than the longest sequence's.

    Example:
        >>> packed = clew.nn.utils.rnn.pack_sequence([clew.tensor([1, 2]), clew.tensor([3])])
        >>> padded, lengths = clew.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        >>> padded.tolist(), lengths.tolist()
        ([[1, 2], [3, 0]], [2, 1])
    """
    need_bools("pad_packed_sequence", batch_first=batch_first)
    data, batch_sizes, _, back = sequence
    steps, batch = batch_sizes.shape[0], int(batch_sizes[0])
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "pad_packed_sequence: Expected total_length to be at least the length of the "
                f"longest sequence in input, but got total_length={total_length} and max "
                f"sequence length being {steps}"
            )
    sizes_column = clew.as_tensor(batch_sizes, dtype=clew.int64).unsqueeze(1)
    live = clew.arange(batch).unsqueeze(0) < sizes_column
    lengths = live.sum(0)
    flat = live.reshape(-1)
    source = clew.where(flat, flat.to(clew.int64).cumsum(0) - 1, 0)
    rest = data.shape[1:]
    picked = data.index_select(0, source)
    shown = flat.reshape(-1, *([1] * len(rest)))
    # Of data's dtype: a number would make floats of integers.
    padding = clew.full((), padding_value, dtype=data.dtype, device=data.device)
    out = clew.where(shown, picked, padding).reshape(steps, batch, *rest)
    if total_length is not None and total_length > steps:
        more = clew.full((total_length - steps, batch, *rest), padding_value, dtype=data.dtype)
        out = clew.cat([out, more])
    if batch_first:
        out = out.transpose(0, 1)
    if back is not None:
        return out.index_select(0 if batch_first else 1, back), lengths.index_select(0, back)
    return out, lengths


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> clew.Tensor:
    """Stacks sequences of different lengths.

    Args:
        sequences: N tensors (T_i, ...), equal in the further dims.
        batch_first: give (N, T, ...) instead of (T, N, ...).
        padding_value: what fills the rest.
        padding_side: "right" or "left".

    Returns:
        one tensor, with T the greatest T_i.

    Example:
        >>> a, b = clew.tensor([1, 2]), clew.tensor([3])
        >>> clew.nn.utils.rnn.pad_sequence([a, b], batch_first=True).tolist()
        [[1, 2], [3, 0]]
    """
    need_bools("pad_sequence", batch_first=batch_first)
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: padding_side must be 'left' or 'right'; got {padding_side!r}"
        )
    if isinstance(sequences, clew.Tensor):
        sequences = sequences.unbind(0)
    elif hasattr(sequences, "padded"):  # an exporter's, as long as data say
        return sequences.padded(batch_first, padding_value, padding_side)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    longest = max(s.shape[0] for s in sequences)
    rest = sequences[0].shape[1:]
    rows = []
    for s in sequences:
        if s.shape[1:] != rest:
            raise RuntimeError(
                f"pad_sequence: sizes after the first dim must agree; got {tuple(rest)} and "
                f"{tuple(s.shape[1:])}"
            )
        missing = longest - s.shape[0]
        if missing:
            more = clew.full((missing, *rest), padding_value, dtype=s.dtype, device=s.device)
            s = clew.cat([s, more] if padding_side == "right" else [more, s])
        rows.append(s)
    return clew.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Takes a padded batch apart.

    Args:
        padded_sequences: (T, N, ...) or, with batch_first, (N, T, ...).
        lengths: (N), the length of each sequence.
        batch_first: see padded_sequences.

    Returns:
        a list of N tensors (T_i, ...).

    Example:
        >>> padded = clew.tensor([[1, 2], [3, 0]])
        >>> parts = clew.nn.utils.rnn.unpad_sequence(padded, [2, 1], batch_first=True)
        >>> [part.tolist() for part in parts]
        [[1, 2], [3]]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    rows = padded_sequences.unbind(0)
    return [row[: int(n)] for row, n in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences of different lengths.

    Args:
        sequences: N tensors (T_i, ...), equal in the further dims.
        enforce_sorted: the lengths fall; otherwise the batch is sorted here.

    Returns:
        a PackedSequence.

    Example:
        >>> packed = clew.nn.utils.rnn.pack_sequence([clew.tensor([1, 2]), clew.tensor([3])])
        >>> packed.batch_sizes.tolist()
        [2, 1]
    """
    lengths = [int(s.shape[0]) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Takes a PackedSequence apart.

    Args:
        packed_sequences: the batch.

    Returns:
        a list of N tensors (T_i, ...), in the order that was packed.

    Example:
        >>> packed = clew.nn.utils.rnn.pack_sequence([clew.tensor([1, 2]), clew.tensor([3])])
        >>> [part.tolist() for part in clew.nn.utils.rnn.unpack_sequence(packed)]
        [[1, 2], [3]]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
