# Made by tools/make_stubs.py from the table of operations; not edited by hand.

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, overload

import numpy as _np
import numpy.typing as _npt

_bool = builtins.bool
_int = builtins.int
_float = builtins.float
_str = builtins.str
Number: TypeAlias = _bool | _int | _float | builtins.complex
from clew._C import _MinMax as _MinMax
from clew._C import _ValuesIndices as _ValuesIndices
from clew import Tensor as Tensor
from clew._C import dtype as _dtype
from clew.nn.functional._grid import affine_grid as affine_grid
from clew.nn.functional._loss import binary_cross_entropy as binary_cross_entropy
from clew.nn.functional._loss import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from clew.nn.functional._shuffle import channel_shuffle as channel_shuffle
from clew.nn.functional._core import conv_tbc as conv_tbc
from clew.nn.functional._margin import cosine_embedding_loss as cosine_embedding_loss
from clew.nn.functional._margin import cosine_similarity as cosine_similarity
from clew.nn.functional._cross_entropy import cross_entropy as cross_entropy
from clew.nn.functional._ctc import ctc_loss as ctc_loss
from clew.nn.functional._embedding import embedding as embedding
from clew.nn.functional._embedding import embedding_bag as embedding_bag
from clew.nn.functional._embedding import embedding_renorm_ as embedding_renorm_
from clew.nn.functional._loss import gaussian_nll_loss as gaussian_nll_loss
from clew.nn.functional._grid import grid_sample as grid_sample
from clew.nn.functional._core import gumbel_softmax as gumbel_softmax
from clew.nn.functional._core import hardtanh as hardtanh
from clew.nn.functional._margin import hinge_embedding_loss as hinge_embedding_loss
from clew.nn.functional._distance_loss import huber_loss as huber_loss
from clew.nn.functional._core import instance_norm as instance_norm
from clew.nn.functional._vision import interpolate as interpolate
from clew.nn.functional._loss import kl_div as kl_div
from clew.nn.functional._distance_loss import l1_loss as l1_loss
from clew.nn.functional._cross_entropy import linear_cross_entropy as linear_cross_entropy
from clew.nn.functional._core import local_response_norm as local_response_norm
from clew.nn.functional._core import log_softmax as log_softmax
from clew.nn.functional._margin import margin_ranking_loss as margin_ranking_loss
from clew.nn.functional._pool import max_unpool1d as max_unpool1d
from clew.nn.functional._pool import max_unpool2d as max_unpool2d
from clew.nn.functional._pool import max_unpool3d as max_unpool3d
from clew.nn.functional._distance_loss import mse_loss as mse_loss
from clew.nn.functional._attention import (
    multi_head_attention_forward as multi_head_attention_forward,
)
from clew.nn.functional._margin import multi_margin_loss as multi_margin_loss
from clew.nn.functional._margin import multilabel_margin_loss as multilabel_margin_loss
from clew.nn.functional._margin import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from clew.nn.functional._cross_entropy import nll_loss as nll_loss
from clew.nn.functional._core import normalize as normalize
from clew.nn.functional._margin import pairwise_distance as pairwise_distance
from clew._ops.distances import pdist as pdist
from clew.nn.functional._shuffle import pixel_shuffle as pixel_shuffle
from clew.nn.functional._shuffle import pixel_unshuffle as pixel_unshuffle
from clew.nn.functional._loss import poisson_nll_loss as poisson_nll_loss
from clew.nn.functional._core import rrelu as rrelu
from clew.nn.functional._core import rrelu_ as rrelu_
from clew.nn.functional._distance_loss import smooth_l1_loss as smooth_l1_loss
from clew.nn.functional._margin import soft_margin_loss as soft_margin_loss
from clew.nn.functional._core import softmax as softmax
from clew.nn.functional._core import softmin as softmin
from clew.nn.functional._margin import triplet_margin_loss as triplet_margin_loss
from clew.nn.functional._margin import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from clew.nn.functional._vision import upsample as upsample
from clew.nn.functional._vision import upsample_bilinear as upsample_bilinear
from clew.nn.functional._vision import upsample_nearest as upsample_nearest

def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor: ...
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor: ...
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Any, return_indices: Literal[False] = ...
) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Any, *, return_indices: Literal[True]
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: _bool = ...) -> Any: ...
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: _bool = ...
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Any, return_indices: Literal[False] = ...
) -> Tensor: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Any, *, return_indices: Literal[True]
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: _bool = ...) -> Any: ...
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: _bool = ...
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Any, return_indices: Literal[False] = ...
) -> Tensor: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Any, *, return_indices: Literal[True]
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: _bool = ...) -> Any: ...
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: _bool = ...
) -> builtins.tuple[Tensor, Tensor]: ...
def alpha_dropout(
    input: Tensor,
    p: _float = ...,
    training: _bool = ...,
    inplace: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def avg_pool1d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = ...,
    ceil_mode: _bool = ...,
    count_include_pad: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def avg_pool2d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = ...,
    ceil_mode: _bool = ...,
    count_include_pad: _bool = ...,
    divisor_override: _int | None = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def avg_pool3d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = ...,
    ceil_mode: _bool = ...,
    count_include_pad: _bool = ...,
    divisor_override: _int | None = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = ...,
    bias: Tensor | None = ...,
    training: _bool = ...,
    momentum: _float = ...,
    eps: _float = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def bilinear(
    input1: Tensor,
    input2: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def celu(
    input: Tensor, alpha: _float = ..., inplace: _bool = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def celu_(input: Tensor, alpha: _float = ..., inplace: _bool = ...) -> Tensor: ...
@overload
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = ...,
    dilation: _int | Sequence[_int] = ...,
    groups: _int = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: _int | Sequence[_int] = ...,
    padding: _str = ...,
    dilation: _int | Sequence[_int] = ...,
    groups: _int = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = ...,
    dilation: _int | Sequence[_int] = ...,
    groups: _int = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: _int | Sequence[_int] = ...,
    padding: _str = ...,
    dilation: _int | Sequence[_int] = ...,
    groups: _int = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = ...,
    dilation: _int | Sequence[_int] = ...,
    groups: _int = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: _int | Sequence[_int] = ...,
    padding: _str = ...,
    dilation: _int | Sequence[_int] = ...,
    groups: _int = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = ...,
    output_padding: _int | Sequence[_int] = ...,
    groups: _int = ...,
    dilation: _int | Sequence[_int] = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = ...,
    output_padding: _int | Sequence[_int] = ...,
    groups: _int = ...,
    dilation: _int | Sequence[_int] = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = ...,
    output_padding: _int | Sequence[_int] = ...,
    groups: _int = ...,
    dilation: _int | Sequence[_int] = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def dropout(
    input: Tensor,
    p: _float = ...,
    training: _bool = ...,
    inplace: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def dropout1d(
    input: Tensor,
    p: _float = ...,
    training: _bool = ...,
    inplace: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def dropout2d(
    input: Tensor,
    p: _float = ...,
    training: _bool = ...,
    inplace: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def dropout3d(
    input: Tensor,
    p: _float = ...,
    training: _bool = ...,
    inplace: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def elu(
    input: Tensor, alpha: _float = ..., inplace: _bool = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def elu_(input: Tensor, alpha: _float = ..., inplace: _bool = ...) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor,
    p: _float = ...,
    training: _bool = ...,
    inplace: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def fold(
    input: Tensor,
    output_size: _int | Sequence[_int],
    kernel_size: _int | Sequence[_int],
    dilation: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = ...,
    stride: _int | Sequence[_int] = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: Literal[False] = ...,
    _random_samples: Any = ...,
) -> Tensor: ...
@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    *,
    return_indices: Literal[True],
    _random_samples: Any = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: _bool = ...,
    _random_samples: Any = ...,
) -> Any: ...
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: _bool = ...,
    _random_samples: Any = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: Literal[False] = ...,
    _random_samples: Any = ...,
) -> Tensor: ...
@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    *,
    return_indices: Literal[True],
    _random_samples: Any = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: _bool = ...,
    _random_samples: Any = ...,
) -> Any: ...
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: _bool = ...,
    _random_samples: Any = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
def gelu(input: Tensor, *, approximate: _str = ..., out: Tensor | None = ...) -> Tensor: ...
def glu(input: Tensor, dim: _int = ..., *, out: Tensor | None = ...) -> Tensor: ...
def group_norm(
    input: Tensor,
    num_groups: _int,
    weight: Tensor | None = ...,
    bias: Tensor | None = ...,
    eps: _float = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def hardshrink(input: Tensor, lambd: Number = ..., *, out: Tensor | None = ...) -> Tensor: ...
def hardsigmoid(input: Tensor, inplace: _bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
def hardswish(input: Tensor, inplace: _bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
def hardtanh_(
    input: Tensor, min_val: Number = ..., max_val: Number = ..., inplace: _bool = ...
) -> Tensor: ...
def layer_norm(
    input: Tensor,
    normalized_shape: _int | Sequence[_int],
    weight: Tensor | None = ...,
    bias: Tensor | None = ...,
    eps: _float = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def leaky_relu(
    input: Tensor, negative_slope: Number = ..., inplace: _bool = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def leaky_relu_(input: Tensor, negative_slope: Number = ..., inplace: _bool = ...) -> Tensor: ...
def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def logsigmoid(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def lp_pool1d(
    input: Tensor, norm_type: _float, kernel_size: Any, stride: Any = ..., ceil_mode: _bool = ...
) -> Tensor: ...
def lp_pool2d(
    input: Tensor, norm_type: _float, kernel_size: Any, stride: Any = ..., ceil_mode: _bool = ...
) -> Tensor: ...
def lp_pool3d(
    input: Tensor, norm_type: _float, kernel_size: Any, stride: Any = ..., ceil_mode: _bool = ...
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    return_indices: _bool = ...,
) -> Any: ...
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    return_indices: _bool = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    return_indices: _bool = ...,
) -> Any: ...
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    return_indices: _bool = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    return_indices: _bool = ...,
) -> Any: ...
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: _bool = ...,
    return_indices: _bool = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
def mish(input: Tensor, inplace: _bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
def native_channel_shuffle(input: Tensor, groups: _int) -> Tensor: ...
def one_hot(tensor: Tensor, num_classes: _int = ..., *, out: Tensor | None = ...) -> Tensor: ...
def pad(
    input: Tensor,
    pad: _int | Sequence[_int],
    mode: _str = ...,
    value: _float | None = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def relu(input: Tensor, inplace: _bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
def relu6(input: Tensor, inplace: _bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
def relu_(input: Tensor, inplace: _bool = ...) -> Tensor: ...
def rms_norm(
    input: Tensor,
    normalized_shape: _int | Sequence[_int],
    weight: Tensor | None = ...,
    eps: _float | None = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    dropout_p: _float = ...,
    is_causal: _bool = ...,
    *,
    scale: _float | None = ...,
    enable_gqa: _bool = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def selu(input: Tensor, inplace: _bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
def selu_(input: Tensor, inplace: _bool = ...) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def silu(input: Tensor, inplace: _bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
def softplus(
    input: Tensor, beta: Number = ..., threshold: Number = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def softshrink(input: Tensor, lambd: Number = ..., *, out: Tensor | None = ...) -> Tensor: ...
def softsign(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def tanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def tanhshrink(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def threshold(
    input: Tensor,
    threshold: Number,
    value: Number,
    inplace: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def threshold_(input: Tensor, threshold: Number, value: Number, inplace: _bool = ...) -> Tensor: ...
def unfold(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    dilation: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = ...,
    stride: _int | Sequence[_int] = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
