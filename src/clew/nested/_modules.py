"""What modules of clew.nn do with ragged batches; packed sequences and collation."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew._C import Tensor
from clew.nested._attention import attend
from clew.nested._construct import as_nested_tensor
from clew.nested._strided import is_nested_rows
from clew.nested._tensor import NestedTensor, Rows, is_ragged, ragged

__all__ = ["attention_of", "collate", "from_packed_sequence", "recurrent", "to_packed_sequence"]


_LAYOUT = (
    "a nested input must be ragged (clew.jagged); make it so with "
    "clew.nested.as_nested_tensor(x, layout=clew.jagged)"
)


def attention_of(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    key_padding_mask: Any,
    need_weights: bool,
    attn_mask: Any,
    is_causal: bool,
) -> tuple[NestedTensor, None]:
    """The forward pass of a MultiheadAttention over ragged batches."""
    name = "MultiheadAttention"
    if any(map(is_nested_rows, (query, key, value))):
        raise RuntimeError(f"{name}: {_LAYOUT}")
    for what, wrong, remedy in (
        ("batch_first=True", not module.batch_first, "make the module with it"),
        ("need_weights=False", need_weights, "weights would differ in two sizes; pass it"),
        ("no key_padding_mask", key_padding_mask is not None, "rows have no padding"),
        (
            "neither add_bias_kv nor add_zero_attn",
            module.bias_k is not None or module.add_zero_attn,
            "make the module without them, or use .to_padded_tensor(padding)",
        ),
    ):
        if wrong:
            raise RuntimeError(f"{name}: ragged tensors need {what}: {remedy}")
    if not all(map(is_ragged, (query, key, value))):
        raise RuntimeError(
            f"{name}: query, key and value must all be ragged, or none of them; make a ragged "
            "tensor of a dense one with clew.nested.as_nested_tensor"
        )
    same_kv, same = key is value, query is key
    q = query.packed()
    k = q if same else key.packed()
    v = k if same_kv else value.packed()
    for what, x, width in (
        ("query", q, module.embed_dim),
        ("key", k, module.kdim),
        ("value", v, module.vdim),
    ):
        sizes = x._sizes()
        if len(sizes) != 3 or x._at != 1 or sizes[2] != width:
            raise RuntimeError(
                f"{name}: {what} must be (batch, ragged length, {width}); got {list(x.shape)}"
            )
    if len(q._rows.counts) != len(k._rows.counts) or not k._rows.is_like(v._rows):
        raise RuntimeError(
            f"{name}: query, key and value must have the same number of rows, and those of key and "
            f"value the same lengths; got {list(q.shape)}, {list(k.shape)} and {list(v.shape)}"
        )
    if attn_mask is not None:
        bool_mask = attn_mask.dtype is clew.bool  # here True hides, in the function it shows
        attn_mask = ~attn_mask if bool_mask else attn_mask.to(q.dtype)
    queries, keys, values = (
        t.unflatten(1, (module.num_heads, module.head_dim))
        for t in _projected(module, q._elements, k._elements, v._elements, same and same_kv)
    )
    made = attend(
        queries,
        keys,
        values,
        q._rows,
        k._rows,
        attn_mask=attn_mask,
        dropout_p=module.dropout if module.training else 0.0,
        is_causal=is_causal,
    )
    out = module.out_proj
    made = clew.nn.functional.linear(made.flatten(1), out.weight, out.bias)
    return ragged(q._rows, made), None


def _projected(module: Any, q: Tensor, k: Tensor, v: Tensor, same: bool) -> Any:
    linear, width = clew.nn.functional.linear, module.embed_dim
    weight, bias = module.in_proj_weight, module.in_proj_bias
    if same and weight is not None:
        return linear(q, weight, bias).split(width, 1)
    weights = (
        weight.split(width)
        if weight is not None
        else (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    )
    biases = (None,) * 3 if bias is None else bias.split(width)
    return tuple(linear(t, w, b) for t, w, b in zip((q, k, v), weights, biases))


def _packing(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of rows one behind the other: how many reach each step, their order by falling length, and
    the place of each element among those of all steps.
    """
    counts = np.asarray(rows.counts, np.int64)
    order = np.argsort(-counts, kind="stable")
    sizes = (counts[None, :] > np.arange(rows.longest)[:, None]).sum(1)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    starts = np.cumsum(sizes) - sizes
    return sizes, order, starts[rows.positions().numpy()] + rank[rows.ids().numpy()]


def to_packed_sequence(input: NestedTensor) -> Any:
    """A packed sequence of a ragged tensor's rows, which recurrent layers take.

    Args:
        input: ragged, (rows, ragged length, ...); no row is empty.

    Returns:
        a `clew.nn.utils.rnn.PackedSequence`; gradients flow to `input`.

    Raises:
        RuntimeError: `input` is not ragged in dim 1, or a row is empty.

    >>> x = clew.nested.nested_tensor([clew.tensor([1, 2]), clew.tensor([3, 4, 5])])
    >>> clew.nested.to_packed_sequence(x).data
    tensor([3, 1, 4, 2, 5])
    """
    from clew.nn.utils.rnn import PackedSequence

    name = "to_packed_sequence"
    if not is_ragged(input) or input._at != 1:
        raise RuntimeError(f"{name}: expected a tensor that is ragged in dim 1")
    if not input._rows.longest or min(input._rows.counts) == 0:
        raise RuntimeError(f"{name}: rows must have at least one element")
    x = input.packed()
    sizes, order, places = _packing(x._rows)
    back = np.empty_like(places)
    back[places] = np.arange(len(places))
    return PackedSequence(
        x._elements.index_select(0, clew.from_numpy(back)),
        clew.from_numpy(sizes.astype(np.int64)),
        clew.from_numpy(order),
    )


def from_packed_sequence(sequence: Any) -> NestedTensor:
    """A ragged tensor of a packed sequence.

    Args:
        sequence: a `clew.nn.utils.rnn.PackedSequence`.

    Returns:
        a ragged tensor, (sequences, ragged length, ...), in the order before packing; gradients
        flow to `sequence.data`.

    Raises:
        TypeError: something else came.

    >>> rows = [clew.tensor([1, 2, 3]), clew.tensor([4])]
    >>> packed = clew.nn.utils.rnn.pack_sequence(rows)
    >>> clew.nested.from_packed_sequence(packed).values()
    tensor([1, 2, 3, 4])
    """
    from clew.nn.utils.rnn import PackedSequence

    if not isinstance(sequence, PackedSequence):
        raise TypeError(
            f"from_packed_sequence: expected a PackedSequence; got {type(sequence).__name__}"
        )
    sizes = sequence.batch_sizes.numpy()
    counts = (sizes[:, None] > np.arange(sizes[0] if len(sizes) else 0)[None, :]).sum(0)
    back = sequence.unsorted_indices
    rank = np.arange(len(counts)) if back is None else back.numpy()
    rows = Rows.of_counts(counts[rank])
    starts = np.cumsum(sizes) - sizes
    places = starts[rows.positions().numpy()] + rank[rows.ids().numpy()]
    return ragged(rows, sequence.data.index_select(0, clew.from_numpy(places)))


def recurrent(module: Any, input: NestedTensor, hx: Any) -> Any:
    """The forward pass of an RNN, LSTM or GRU over a ragged batch: (output, last states)."""
    name = module.mode if module.mode in ("LSTM", "GRU") else "RNN"
    if not is_ragged(input):
        raise RuntimeError(f"{name}: {_LAYOUT}")
    if not module.batch_first:
        raise RuntimeError(f"{name}: ragged tensors need batch_first=True: make the module with it")
    if input.dim() != 3 or input._at != 1:
        raise RuntimeError(
            f"{name}: a ragged input must be (batch, ragged length, {module.input_size}); got "
            f"{list(input.shape)}"
        )
    rows = input.packed()._rows
    full = [i for i, n in enumerate(rows.counts) if n]
    if len(full) < len(rows.counts) or not full:
        return _over_full_rows(name, module, input, full, hx)
    out, last = module.forward(to_packed_sequence(input), hx)
    return ragged(rows, from_packed_sequence(out)._elements), last


def _over_full_rows(
    name: str, module: Any, input: NestedTensor, full: list[int], hx: Any
) -> tuple[NestedTensor, Any]:
    """recurrent() where some rows are empty: these give nothing and keep the states they have."""
    rows, values = input.packed()._rows, input.packed()._elements
    count, lstm = len(rows.counts), module.mode == "LSTM"
    layers = module.num_layers * (2 if module.bidirectional else 1)
    width = module.proj_size or module.hidden_size
    if hx is None:
        widths = (width, module.hidden_size) if lstm else (width,)
        states = tuple(values.new_zeros((layers, count, n)) for n in widths)
    else:
        states = tuple(hx) if lstm else (hx,)
    for state in states:
        if state.dim() != 3 or state.shape[1] != count:
            raise RuntimeError(
                f"{name}: the states must be (layers, {count}, width), a column for each row; got "
                f"{list(state.shape)}"
            )
    if full:
        at = clew.tensor(full, dtype=clew.int64)
        given = tuple(state.index_select(1, at) for state in states)
        x: Any = input.index_select(0, at)
        out, last = module.forward(to_packed_sequence(x), given if lstm else given[0])
        made = from_packed_sequence(out)._elements
        ends = last if lstm else (last,)
        states = tuple(s.index_copy(1, at, end) for s, end in zip(states, ends))
    else:
        made = values.new_zeros((0, width * (2 if module.bidirectional else 1)))
    return ragged(rows, made), states if lstm else states[0]


def collate(batch: Any) -> Any:
    """Joins samples of equal structure into a batch, for `DataLoader(collate_fn=...)`: tensors of
    one dim or more become the rows of a ragged tensor.

    Args:
        batch: the samples: tensors, arrays, numbers, and containers of these.

    Returns:
        the structure of one sample with nested tensors of tensors and arrays, ragged unless rows
        differ in several sizes; numbers and tensors without dims become one dense tensor, as in
        `default_collate`.

    Raises:
        RuntimeError: rows differ in dtype or in the number of dims.

    >>> x, y = clew.nested.collate([(clew.ones(2), 0), (clew.ones(3), 1)])
    >>> x.offsets(), y
    (tensor([0, 2, 5]), tensor([0, 1]))
    """
    from clew.utils.data._utils.collate import collate as joined
    from clew.utils.data._utils.collate import default_collate_fn_map

    def tensors(batch: Any, *, collate_fn_map: Any = None) -> Any:
        return as_nested_tensor(list(batch)) if batch[0].dim() else clew.stack(list(batch))

    def arrays(batch: Any, *, collate_fn_map: Any = None) -> Any:
        return tensors([clew.as_tensor(a) for a in batch])

    return joined(
        batch,
        collate_fn_map={Tensor: tensors, np.ndarray: arrays, **_others(default_collate_fn_map)},
    )


def _others(known: dict[Any, Any]) -> dict[Any, Any]:
    return {kind: fn for kind, fn in known.items() if kind not in (Tensor, np.ndarray)}
