"""What PyTorch calls native: norms with their statistics, dropout with its mask, and pieces that
its compiled graphs consist of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_tensors, wrapped_dim
from clew._C import Tensor
from clew._ops.primitive import loops_in_vmap, write_out

__all__ = [
    "_batch_norm_with_update",
    "_chunk_cat",
    "_native_batch_norm_legit",
    "_safe_softmax",
    "_segment_reduce",
    "_softmax_backward_data",
    "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate",
    "max_pool2d_with_indices_backward",
    "native_batch_norm",
    "native_dropout",
    "native_dropout_backward",
    "native_group_norm",
    "native_layer_norm",
    "native_norm",
    "norm_except_dim",
    "segment_reduce",
]

_f = _C.functions
_ops = _C.ops
_var_mean = _f["var_mean"]


def _statistics(x: Tensor, dims: Any, keepdim: bool, eps: float) -> tuple[Tensor, Tensor]:
    """Mean and reciprocal standard deviation; of 16-bit floats in float32."""
    if x.dtype not in (_dtypes.float16, _dtypes.bfloat16):
        variance, mean = _var_mean(x, dims, correction=0, keepdim=keepdim)
        return mean, (variance + eps).rsqrt()
    variance, mean = _var_mean(x.float(), dims, correction=0, keepdim=keepdim)
    return mean.to(x.dtype), (variance + eps).rsqrt().to(x.dtype)


def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm, with the mean and the reciprocal standard deviation it used.

    Args:
        input: the tensor.
        normalized_shape: the last dims, which are normalized together.
        weight: of that shape, or None.
        bias: of that shape, or None.
        eps: added to the variances.

    Returns:
        the result, the means and the reciprocal deviations.

    >>> clew.native_layer_norm(clew.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)[1:]
    (tensor([[2.]]), tensor([[1.]]))
    """
    if not isinstance(input, Tensor):
        need_tensors("native_layer_norm", input=input)
    out = _f["nn.functional.layer_norm"](input, normalized_shape, weight, bias, eps)
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    return out, *_statistics(input.detach(), dims, True, eps)


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm, with each group's mean and reciprocal standard deviation.

    Args:
        input: (N, C, ...).
        weight: (C), or None.
        bias: (C), or None.
        N: the batch size.
        C: the number of channels.
        HxW: the number of elements of a channel.
        group: the number of groups.
        eps: added to the variances.

    Returns:
        the result, and the groups' means and reciprocal deviations.

    >>> clew.native_group_norm(clew.tensor([[1.0, 3.0]]), None, None, 1, 2, 1, 1, 0.0)[1]
    tensor([[2.]])
    """
    if not isinstance(input, Tensor):
        need_tensors("native_group_norm", input=input)
    if input.numel() != N * C * HxW:
        raise RuntimeError(
            f"native_group_norm: input must have N * C * HxW = {N * C * HxW} elements; got "
            f"{list(input.shape)}"
        )
    out = _f["nn.functional.group_norm"](input.reshape(N, C, HxW), group, weight, bias, eps)
    mean, rstd = _statistics(input.reshape(N, group, C // group * HxW), 2, False, eps)
    return out.reshape(input.shape), mean, rstd


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm, with the batch's mean and reciprocal standard deviation (empty when the running
    ones are used). Training updates the running statistics.

    Args:
        input: (batch, channels, ...).
        weight: (channels), or None.
        bias: (channels), or None.
        running_mean: (channels), updated in training, or None.
        running_var: the same for the variances.
        training: whether to use and track the statistics of the batch.
        momentum: the share of the batch in what is tracked.
        eps: added to the variances.

    Returns:
        the result, and the batch's means and reciprocal deviations.

    >>> x = clew.tensor([[1.0], [3.0]])
    >>> clew.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1:]
    (tensor([2.]), tensor([1.]))
    """
    need_tensors("native_batch_norm", input=input)
    if training:
        dims = tuple(d for d in range(input.ndim) if d != 1)
        mean, rstd = _statistics(input.detach(), dims, False, eps)
    else:
        mean, rstd = input.new_empty(0), input.new_empty(0)
    made = _f["nn.functional.batch_norm"](
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    return write_out("native_batch_norm", (made, mean, rstd), out)


def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *arguments: Any, **options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`native_batch_norm`, or the same without running statistics: then the arguments after
    ``bias`` are (training, momentum, eps).

    >>> x = clew.tensor([[1.0], [3.0]])
    >>> clew._native_batch_norm_legit(x, None, None, True, 0.1, 0.0)[1]
    tensor([2.])
    """
    named = {"running_mean", "running_var"} & set(options)
    if named or (arguments and not isinstance(arguments[0], bool)):
        return native_batch_norm(input, weight, bias, *arguments, **options)
    return native_batch_norm(input, weight, bias, None, None, *arguments, **options)


def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
    *,
    out: Any = None,
) -> tuple[Tensor, ...]:
    """Batch norm that updates the running statistics, with the batch's own and an empty tensor.

    >>> x, mean, var = clew.tensor([[1.0], [3.0]]), clew.zeros(1), clew.ones(1)
    >>> clew._batch_norm_with_update(x, None, None, mean, var, 0.5, 0.0)[1], mean
    (tensor([2.]), tensor([1.]))
    """
    made = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    reserve = _C.empty(0, dtype=_dtypes.uint8, device=input.device)
    return write_out("_batch_norm_with_update", (*made, reserve), out)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout, with the mask of what stayed.

    Args:
        input: the tensor.
        p: the probability of dropping.
        train: False or None: nothing is dropped.

    Returns:
        the result and the mask.

    >>> clew.native_dropout(clew.ones(2), 0.0, True)
    (tensor([1., 1.]), tensor([True, True]))
    """
    need_tensors("native_dropout", input=input)
    if not 0 <= p <= 1:
        raise RuntimeError(f"native_dropout: p must be between 0 and 1; got {p}")
    if train is False:
        return input.clone(), _C.ones(input.shape, dtype=_dtypes.bool, device=input.device)
    mask = _C.empty(input.shape, dtype=_dtypes.bool, device=input.device).bernoulli_(1 - p)
    return native_dropout_backward(input, mask, 0.0 if p == 1 else 1 / (1 - p)), mask


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of :func:`native_dropout`: grad_output * mask * scale.

    >>> clew.native_dropout_backward(clew.ones(2), clew.tensor([True, False]), 2.0)
    tensor([2., 0.])
    """
    need_tensors("native_dropout_backward", grad_output=grad_output, mask=mask)
    return grad_output * mask * scale


def native_norm(
    input: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The p-norm of the elements, along ``dim`` or of all.

    Args:
        input: the tensor.
        p: the power of the norm.
        dim: the dims; all when not given.
        keepdim: keep them, with size 1.
        dtype: what to compute in.

    >>> clew.native_norm(clew.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return _f["norm"](input, 2 if p is None else p, dim, keepdim, dtype=dtype)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms of the parts along ``dim``, in a shape that broadcasts with v; of all for -1.

    >>> clew.norm_except_dim(clew.tensor([[3.0, 4.0], [0.0, 2.0]])).tolist()
    [[5.0], [2.0]]
    """
    need_tensors("norm_except_dim", v=v)
    if dim == -1:
        return v.norm(pow)
    at = wrapped_dim("norm_except_dim", dim, v.ndim)
    if v.ndim < 2:  # each part is one number
        return v.abs() if pow else (v != 0).to(v.dtype)
    return v.norm(pow, tuple(d for d in range(v.ndim) if d != at), True)


def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any
) -> Tensor:
    """The gradient of softmax, from its output: output * (grad - sum(grad * output)).

    >>> y = clew.tensor([0.25, 0.75])
    >>> clew._softmax_backward_data(clew.tensor([1.0, 0.0]), y, 0, clew.float32)
    tensor([ 0.1875, -0.1875])
    """
    need_tensors("_softmax_backward_data", grad_output=grad_output, output=output)
    return _ops._softmax_backward(grad_output, output, dim).to(input_dtype)


def _safe_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Softmax, but 0 instead of NaN where all of a row is -inf.

    >>> clew._safe_softmax(clew.full((2,), -float("inf")), 0)
    tensor([0., 0.])
    """
    need_tensors("_safe_softmax", input=input)
    made = _f["softmax"](input, dim, dtype=dtype)
    empty = (input == -float("inf")).all(dim, keepdim=True)
    return made.masked_fill(empty, 0)


def _chunk_cat(
    tensors: Sequence[Tensor], dim: int, num_chunks: int, *, out: Tensor | None = None
) -> Tensor:
    """Cuts each tensor along ``dim`` into equally many chunks (the last one filled up with zeros),
    flattens them, and puts the chunks of equal number beside each other.

    >>> clew._chunk_cat([clew.tensor([1, 2, 3]), clew.tensor([4, 5])], 0, 2).tolist()
    [[1, 2, 4], [3, 0, 5]]
    """
    if not tensors:
        raise RuntimeError("_chunk_cat: expects a non-empty list of tensors")
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat: num_chunks must be positive; got {num_chunks}")
    parts = []
    for t in tensors:
        if not isinstance(t, Tensor):
            need_tensors("_chunk_cat", tensors=t)
        at = wrapped_dim("_chunk_cat", dim, t.ndim)
        if t.numel() == 0:
            raise RuntimeError("_chunk_cat: expects non-empty tensors")
        missing = -t.shape[at] % num_chunks
        widths = [0, 0] * (t.ndim - at - 1) + [0, missing]
        padded = _ops._constant_pad(t, widths) if missing else t
        if t.shape[:at] != tensors[0].shape[:at]:
            raise RuntimeError(
                f"_chunk_cat: sizes before dim {dim} must be equal; got {list(t.shape)} and "
                f"{list(tensors[0].shape)}"
            )
        parts.append(padded.reshape([*t.shape[:at], num_chunks, -1]))
    return write_out(
        "_chunk_cat", _f["cat"](parts, parts[0].ndim - 1), out, converts=True, records=True
    )


def _inside(t: Tensor, indices: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """The indices, those out of range moved to the nearest place there is."""
    return tuple(slice(None) if i is None else i.clamp(-n, n - 1) for i, n in zip(indices, t.shape))


def _unsafe_masked_index(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: float
) -> Tensor:
    """The indexed elements where the mask is true, ``fill`` elsewhere, whatever the index there.

    >>> x, at = clew.tensor([1, 2]), clew.tensor([1, 9])
    >>> clew._unsafe_masked_index(x, at < 2, [at], 0).tolist()
    [2, 0]
    """
    need_tensors("_unsafe_masked_index", input=input, mask=mask)
    if input.numel() == 0:
        return input.new_full(mask.shape, fill) + input.sum()
    return input[_inside(input, indices)].masked_fill(~mask, fill)


def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """The input with values added at indices where the mask is true.

    >>> x, at = clew.tensor([1, 2]), clew.tensor([1, 9])
    >>> clew._unsafe_masked_index_put_accumulate(x, at < 2, [at], clew.tensor([5, 5])).tolist()
    [1, 7]
    """
    need_tensors("_unsafe_masked_index_put_accumulate", input=input, mask=mask, values=values)
    if input.numel() == 0:
        return input.clone()
    return input.index_put(_inside(input, indices), values.masked_fill(~mask, 0), accumulate=True)


def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """The gradient of max pooling: each element of grad_output added where its maximum lay.

    Args:
        grad_output: the gradient of the maxima, (..., oh, ow).
        input: what was pooled, (..., h, w).
        kernel_size, stride, padding, dilation, ceil_mode: not needed beside the indices.
        indices: the places of the maxima in each plane of the input, like `grad_output`.

    >>> g, x, i = clew.ones(1, 1, 1), clew.zeros(1, 2, 2), clew.tensor([[[3]]])
    >>> clew.max_pool2d_with_indices_backward(g, x, 2, 2, 0, 1, False, i).tolist()
    [[[0.0, 0.0], [0.0, 1.0]]]
    """
    need_tensors(
        "max_pool2d_with_indices_backward", grad_output=grad_output, input=input, indices=indices
    )
    planes = input.clone().fill_(0).flatten(-2)  # input has a gradient, of zeros, as in PyTorch
    return planes.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).reshape(input.shape)


# ---- segments ------------------------------------------------------------------------------------

_NEUTRAL = {
    "sum": 0.0,
    "mean": 0.0,
    "prod": 1.0,
    "max": -float("inf"),
    "min": float("inf"),
}


@loops_in_vmap
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduces consecutive segments of a dimension.

    Args:
        data: floating point.
        reduce: 'sum', 'mean', 'max' (or 'amax'), 'min' (or 'amin') or 'prod'.
        lengths: how long each segment is; in dimensions before `axis`, segments differ.
        indices: not supported, as in PyTorch.
        offsets: where each segment starts, and where the last one ends; instead of lengths.
        axis: the dimension of the segments, the last one of lengths or offsets.
        unsafe: do not check the lengths.
        initial: where each reduction starts, the result of an empty segment.

    Returns:
        one row for each segment.

    >>> x = clew.tensor([1.0, 2.0, 3.0])
    >>> clew.segment_reduce(x, "sum", lengths=clew.tensor([1, 2])).tolist()
    [1.0, 5.0]
    """
    name = "segment_reduce"
    need_tensors(name, data=data)
    if not isinstance(reduce, str):
        raise TypeError(f"{name}(): argument 'reduce' must be str, not {type(reduce).__name__}")
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in _NEUTRAL:
        raise RuntimeError(f"{name}: reduce must be one of {sorted(_NEUTRAL)}; got {reduce!r}")
    if indices is not None:
        raise RuntimeError(f"{name}: indices based reduction is not supported yet")
    if lengths is None and offsets is None:
        raise RuntimeError(f"{name}: Either lengths or offsets must be defined.")
    if not data.is_floating_point():
        raise RuntimeError(f"{name}: data must be floating point; got {data.dtype}")
    at = wrapped_dim(name, axis, data.ndim)
    given: Any = lengths if offsets is None else offsets
    need_tensors(name, **{"lengths" if offsets is None else "offsets": given})
    if data.ndim == 0 or given.ndim != at + 1 or given.shape[:-1] != data.shape[:at]:
        raise RuntimeError(
            f"{name}: lengths or offsets must have data's dimensions up to axis {axis}; got "
            f"{list(given.shape)} for {list(data.shape)}"
        )
    size = data.shape[at]
    if offsets is None:
        counts, ends = given.long(), given.long().cumsum(-1)
        starts = ends - counts
        whole = counts.sum(-1) == size
        if not unsafe and not given.is_meta and bool((counts < 0).any() | (~whole).any()):
            raise RuntimeError(
                f"{name}: lengths must not be negative and sum to the size {size} along axis {axis}"
            )
    else:
        starts, ends = given.long()[..., :-1], given.long()[..., 1:]
        counts = ends - starts
    segments = counts.shape[-1]
    neutral = _NEUTRAL[reduce]
    shape = [*data.shape[:at], segments + 1, *data.shape[at + 1 :]]
    base = _C.full(shape, neutral, dtype=data.dtype, device=data.device)
    if segments:
        places = _C.arange(size, device=data.device).expand([*data.shape[:at], size]).contiguous()
        owner = _f["searchsorted"](ends.contiguous(), places, right=True)
        owner = _ops.where(places < starts[..., :1], segments, owner)
    else:
        owner = _C.zeros([*data.shape[:at], size], dtype=_dtypes.int64, device=data.device)
    tail = data.ndim - at - 1
    owner = owner.reshape(list(owner.shape) + [1] * tail).expand(data.shape)
    counts = counts.reshape(list(counts.shape) + [1] * tail)
    how = {"max": "amax", "min": "amin", "prod": "prod"}.get(reduce, "sum")
    made = base.scatter_reduce(at, owner, data, how, include_self=how in ("sum", "prod"))
    made = made.narrow(at, 0, segments).contiguous()
    if initial is not None:
        if reduce == "prod":
            made = made * initial
        elif reduce in ("max", "min"):
            beaten = made < initial if reduce == "max" else made > initial
            made = made.masked_fill(beaten, initial)
        else:
            made = made + initial
    if reduce == "mean":
        empty = float("nan") if initial is None else initial
        made = _ops.where(counts == 0, empty, made / counts.clamp(min=1))
    return made


_segment_reduce = segment_reduce
