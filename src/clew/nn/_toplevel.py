"""Top-level names of functions whose home is nn.functional, with the arguments they have there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew import _C
from clew._base.arguments import need_int, need_tensors
from clew._base.overriding import asks_classes
from clew._C import Tensor

from . import functional as F
from .functional._vision import bilinear_aa as resampled

__all__ = [
    "_upsample_bilinear2d_aa",
    "adaptive_max_pool1d",
    "affine_grid_generator",
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "ctc_loss",
    "embedding_bag",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "group_norm",
    "hinge_embedding_loss",
    "instance_norm",
    "kl_div",
    "layer_norm",
    "margin_ranking_loss",
    "max_pool1d_with_indices",
    "poisson_nll_loss",
    "rrelu",
    "rrelu_",
    "triplet_margin_loss",
]

_REDUCTIONS = ("none", "mean", "sum")


def _reduction(name: str, reduction: int) -> str:
    """The word for the number that these functions take: 0 none, 1 mean, 2 sum."""
    if reduction not in (0, 1, 2):
        raise ValueError(
            f"{name}: reduction must be 0 (none), 1 (mean) or 2 (sum); got {reduction}"
        )
    return _REDUCTIONS[reduction]


@asks_classes
def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The maxima of output_size parts of the last dimension, and where they lie.

    >>> clew.adaptive_max_pool1d(clew.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return F.adaptive_max_pool1d_with_indices(input, output_size)


@asks_classes
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maxima of windows of the last dimension, and where they lie.

    See :func:`clew.nn.functional.max_pool1d`.

    >>> clew.max_pool1d_with_indices(clew.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return F.max_pool1d_with_indices(
        input, kernel_size, stride or None, padding, dilation, ceil_mode
    )


@asks_classes
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """Leaky ReLU, in training with a random slope for each element.

    Args:
        input: the tensor.
        lower: the smallest slope.
        upper: the largest slope.
        training: whether to draw slopes; otherwise the mean of both is taken.
        generator: where the random numbers come from.

    Returns:
        a tensor like input.

    >>> clew.rrelu(clew.tensor([-24.0, 1.0]))
    tensor([-5.5000,  1.0000])
    """
    if generator is not None:
        raise NotImplementedError("rrelu: a generator is not supported; use manual_seed")
    return F.rrelu(input, lower, upper, training)


def rrelu_(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """:func:`clew.rrelu` in place.

    Args:
        input: the tensor; changed.
        lower: the smallest slope.
        upper: the largest slope.
        training: whether to draw slopes; otherwise the mean of both is taken.
        generator: where the random numbers come from.

    Returns:
        the input.

    >>> clew.rrelu_(clew.tensor([-24.0, 1.0]))
    tensor([-5.5000,  1.0000])
    """
    if generator is not None:
        raise NotImplementedError(
            "rrelu_: a generator of its own is not supported; use manual_seed"
        )
    return F.rrelu(input, lower, upper, training, True)


@asks_classes
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Layer norm; see :func:`clew.nn.functional.layer_norm`.

    ``cudnn_enable`` chooses a kernel of other devices and has no effect here.

    >>> clew.layer_norm(clew.tensor([1.0, 3.0]), [2], eps=0.0)
    tensor([-1.,  1.])
    """
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


@asks_classes
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Group norm; see :func:`clew.nn.functional.group_norm`.

    ``cudnn_enabled`` chooses a kernel of other devices and has no effect here.

    >>> clew.group_norm(clew.tensor([[1.0, 3.0]]), 1, eps=0.0)
    tensor([[-1.,  1.]])
    """
    return F.group_norm(input, num_groups, weight, bias, eps)


@asks_classes
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Batch norm, arguments in the order of the low-level function.

    See :func:`clew.nn.functional.batch_norm`; ``cudnn_enabled`` has no effect here.

    >>> x = clew.tensor([[1.0], [3.0]])
    >>> clew.batch_norm(x, None, None, None, None, True, 0.1, 1e-12, False).tolist()
    [[-1.0], [1.0]]
    """
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@asks_classes
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Instance norm, arguments in the order of the low-level function.

    See :func:`clew.nn.functional.instance_norm`; ``cudnn_enabled`` has no effect here.

    >>> x = clew.tensor([[[1.0, 3.0]]])
    >>> clew.instance_norm(x, None, None, None, None, True, 0.1, 1e-12, False).tolist()
    [[[-1.0, 1.0]]]
    """
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


@asks_classes
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """Binary cross entropy of logits; ``reduction`` is 0 (none), 1 (mean) or 2 (sum).

    The other arguments: see :func:`clew.nn.functional.binary_cross_entropy_with_logits`.

    >>> clew.binary_cross_entropy_with_logits(clew.zeros(2), clew.ones(2))
    tensor(0.6931)
    """
    how = _reduction("binary_cross_entropy_with_logits", reduction)
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=how, pos_weight=pos_weight
    )


@asks_classes
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """Cosine embedding loss; ``reduction`` is 0 (none), 1 (mean) or 2 (sum).

    The other arguments: see :func:`clew.nn.functional.cosine_embedding_loss`.

    >>> x = clew.tensor([[1.0, 0.0]])
    >>> clew.cosine_embedding_loss(x, -x, clew.ones(1))
    tensor(2.)
    """
    how = _reduction("cosine_embedding_loss", reduction)
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=how)


@asks_classes
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification; ``reduction`` is 0 (none), 1 (mean) or 2 (sum).

    The other arguments: see :func:`clew.nn.functional.ctc_loss`.

    >>> log_probs = clew.zeros(3, 1, 2).log_softmax(2)
    >>> clew.ctc_loss(log_probs, clew.tensor([[1]]), (3,), (1,))
    tensor(0.2877)
    """
    how = _reduction("ctc_loss", reduction)
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity)


@asks_classes
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """Hinge embedding loss; ``reduction`` is 0 (none), 1 (mean) or 2 (sum).

    The other arguments: see :func:`clew.nn.functional.hinge_embedding_loss`.

    >>> clew.hinge_embedding_loss(clew.tensor([0.5, 0.5]), clew.tensor([1.0, -1.0]))
    tensor(0.5000)
    """
    how = _reduction("hinge_embedding_loss", reduction)
    return F.hinge_embedding_loss(input, target, margin, reduction=how)


@asks_classes
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """Pointwise divergence; ``reduction`` is 0 (none), 1 (mean) or 2 (sum).

    The other arguments: see :func:`clew.nn.functional.kl_div`.

    >>> clew.kl_div(clew.tensor([-1.0]), clew.tensor([1.0]), 2)
    tensor(1.)
    """
    how = _reduction("kl_div", reduction)
    if how == "mean":
        return F.kl_div(input, target, reduction="none", log_target=log_target).mean()
    return F.kl_div(input, target, reduction=how, log_target=log_target)


@asks_classes
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """Margin ranking loss; ``reduction`` is 0 (none), 1 (mean) or 2 (sum).

    The other arguments: see :func:`clew.nn.functional.margin_ranking_loss`.

    >>> clew.margin_ranking_loss(clew.zeros(2), clew.ones(2), clew.ones(2))
    tensor(1.)
    """
    how = _reduction("margin_ranking_loss", reduction)
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=how)


@asks_classes
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """Poisson loss; ``reduction`` is 0 (none), 1 (mean) or 2 (sum).

    The other arguments: see :func:`clew.nn.functional.poisson_nll_loss`.

    >>> clew.poisson_nll_loss(clew.zeros(2), clew.ones(2), True, False, 1e-8, 1)
    tensor(1.)
    """
    how = _reduction("poisson_nll_loss", reduction)
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=how)


@asks_classes
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """Triplet margin loss; ``reduction`` is 0 (none), 1 (mean) or 2 (sum).

    The other arguments: see :func:`clew.nn.functional.triplet_margin_loss`.

    >>> a = clew.zeros(1, 2)
    >>> clew.triplet_margin_loss(a, a, a)
    tensor(1.)
    """
    how = _reduction("triplet_margin_loss", reduction)
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=how)


# ---- sampling, bags -----------------------------------------------------------------------------


def _choice(function: str, name: str, value: Any, words: tuple[str, ...]) -> str:
    value = need_int(function, name, value)
    if not 0 <= value < len(words):
        raise ValueError(f"{function}: {name} must be 0 to {len(words) - 1}; got {value}")
    return words[value]


_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _grid_sampler(
    name: str, input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool, dims: Any
) -> Tensor:
    if not (isinstance(input, Tensor) and isinstance(grid, Tensor)):
        need_tensors(name, input=input, grid=grid)
    if dims is not None and input.ndim != dims:
        raise RuntimeError(f"{name}: input must have {dims} dimensions; got {list(input.shape)}")
    return F.grid_sample(
        input,
        grid,
        _choice(name, "interpolation_mode", mode, _INTERPOLATIONS),
        _choice(name, "padding_mode", padding, _PADDINGS),
        align_corners,
    )


@asks_classes
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """The same as :func:`clew.nn.functional.grid_sample`, with modes as numbers.

    ``interpolation_mode``: 0 bilinear, 1 nearest, 2 bicubic. ``padding_mode``: 0 zeros, 1 border,
    2 reflection.

    >>> x, at = clew.tensor([[[[1.0, 3.0]]]]), clew.zeros(1, 1, 1, 2)
    >>> clew.grid_sampler(x, at, 0, 0, False)
    tensor([[[[2.]]]])
    """
    return _grid_sampler(
        "grid_sampler", input, grid, interpolation_mode, padding_mode, align_corners, None
    )


@asks_classes
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """The same as :func:`grid_sampler`, of images.

    >>> x, at = clew.tensor([[[[1.0, 3.0]]]]), clew.zeros(1, 1, 1, 2)
    >>> clew.grid_sampler_2d(x, at, 0, 0, False)
    tensor([[[[2.]]]])
    """
    return _grid_sampler(
        "grid_sampler_2d", input, grid, interpolation_mode, padding_mode, align_corners, 4
    )


@asks_classes
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """The same as :func:`grid_sampler`, of volumes.

    >>> x, at = clew.tensor([[[[[1.0, 3.0]]]]]), clew.zeros(1, 1, 1, 1, 3)
    >>> clew.grid_sampler_3d(x, at, 0, 0, False)
    tensor([[[[[2.]]]]])
    """
    return _grid_sampler(
        "grid_sampler_3d", input, grid, interpolation_mode, padding_mode, align_corners, 5
    )


@asks_classes
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """The same as :func:`clew.nn.functional.affine_grid`.

    >>> theta = clew.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> clew.affine_grid_generator(theta, (1, 1, 1, 2), True).tolist()
    [[[[-1.0, 0.0], [1.0, 0.0]]]]
    """
    return F.affine_grid(theta, size, align_corners)


def _upsample_bilinear2d_aa(
    input: Tensor,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None = None,
    *,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    """Bilinear :func:`clew.nn.functional.interpolate` that averages where the size shrinks.

    >>> clew._upsample_bilinear2d_aa(clew.tensor([[[[1.0, 3.0]]]]), (1, 1), False)
    tensor([[[[2.]]]])
    """
    if scales_h is None and scales_w is None:
        return F.interpolate(
            input,
            None if output_size is None else list(output_size),
            None if scale_factors is None else list(scale_factors),
            "bilinear",
            align_corners,
            antialias=True,
        )
    if output_size is None or scale_factors is not None:
        raise ValueError("_upsample_bilinear2d_aa: scales_h and scales_w need an output_size")
    return resampled(input, list(output_size), [scales_h, scales_w], align_corners)


@asks_classes
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """:func:`clew.nn.functional.embedding_bag` of a table and the indices of its rows.

    Args:
        mode: 0 for sums, 1 for means, 2 for maxima; the other arguments are as there.

    Returns:
        the bags; for each index its bag; for each bag its size and its maxima's indices (empty for
        other modes than 2, where they are not computed either).

    >>> table = clew.tensor([[1.0], [2.0]])
    >>> clew.embedding_bag(table, clew.tensor([0, 1, 1]), clew.tensor([0, 1]))[0].tolist()
    [[1.0], [4.0]]
    """
    need_tensors("embedding_bag", weight=weight, indices=indices, offsets=offsets)
    how = _choice("embedding_bag", "mode", mode, ("sum", "mean", "max"))
    bags = F.embedding_bag(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=how,
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    starts = offsets[:-1] if include_last_offset else offsets
    places = _C.arange(indices.shape[0], dtype=starts.dtype)
    owner = _C.functions["searchsorted"](starts, places, right=True) - 1
    counted = owner if padding_idx is None else owner[indices != padding_idx % weight.shape[0]]
    sizes = _C.functions["bincount"](counted, minlength=starts.shape[0]).to(starts.dtype)
    return bags, owner.to(starts.dtype), sizes, starts.new_empty(0)
