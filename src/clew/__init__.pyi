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
from clew._C import dtype as _dtype
from clew import __config__ as __config__
from clew import _utils as _utils
from clew import accelerator as accelerator
from clew import amp as amp
from clew import ao as ao
from clew import array_api as array_api
from clew import backends as backends
from clew import compiler as compiler
from clew import cpu as cpu
from clew import cuda as cuda
from clew import debug as debug
from clew import distributed as distributed
from clew import distributions as distributions
from clew import export as export
from clew import fft as fft
from clew import func as func
from clew import functional as functional
from clew import futures as futures
from clew import fx as fx
from clew import hub as hub
from clew import jit as jit
from clew import library as library
from clew import linalg as linalg
from clew import masked as masked
from clew import mps as mps
from clew import multiprocessing as multiprocessing
from clew import nested as nested
from clew import nn as nn
from clew import onnx as onnx
from clew import ops as ops
from clew import optim as optim
from clew import overrides as overrides
from clew import profiler as profiler
from clew import quasirandom as quasirandom
from clew import return_types as return_types
from clew import serialization as serialization
from clew import signal as signal
from clew import sparse as sparse
from clew import special as special
from clew import storage as storage
from clew import testing as testing
from clew import types as types
from clew import utils as utils
from clew import version as version
from clew import xpu as xpu
from clew import _C as _C
from clew import autograd as autograd
from clew import random as random
from clew.serialization import save as save
from clew._insight.graph.graph import graph as graph
from clew._program.compiled import compile as compile
from clew._program.autobatch import autobatch as autobatch
from clew._program.region import deferred as deferred
from clew._program.budget import memory_budget as memory_budget
from clew._program.offload import offload as offload
from clew.overrides import DisableTorchFunction as DisableTorchFunction
from clew._ops.modes import get_deterministic_debug_mode as get_deterministic_debug_mode
from clew._ops.modes import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from clew._ops.modes import is_warn_always_enabled as is_warn_always_enabled
from clew._ops.modes import set_deterministic_debug_mode as set_deterministic_debug_mode
from clew._ops.modes import set_warn_always as set_warn_always
from clew.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from clew.serialization import load as load
from clew.func import vmap as vmap
from clew._C import autocast_decrement_nesting as autocast_decrement_nesting
from clew._C import autocast_increment_nesting as autocast_increment_nesting
from clew._C import bits16 as bits16
from clew._C import bits1x8 as bits1x8
from clew._C import bits2x4 as bits2x4
from clew._C import bits4x2 as bits4x2
from clew._C import bits8 as bits8
from clew._C import clear_autocast_cache as clear_autocast_cache
from clew._C import complex32 as complex32
from clew._C import float4_e2m1fn_x2 as float4_e2m1fn_x2
from clew._C import float8_e4m3fn as float8_e4m3fn
from clew._C import float8_e4m3fnuz as float8_e4m3fnuz
from clew._C import float8_e5m2 as float8_e5m2
from clew._C import float8_e5m2fnuz as float8_e5m2fnuz
from clew._C import float8_e8m0fnu as float8_e8m0fnu
from clew._C import int1 as int1
from clew._C import int2 as int2
from clew._C import int3 as int3
from clew._C import int4 as int4
from clew._C import int5 as int5
from clew._C import int6 as int6
from clew._C import int7 as int7
from clew._C import qint32 as qint32
from clew._C import qint8 as qint8
from clew._C import quint2x4 as quint2x4
from clew._C import quint4x2 as quint4x2
from clew._C import quint8 as quint8
from clew._C import uint1 as uint1
from clew._C import uint2 as uint2
from clew._C import uint3 as uint3
from clew._C import uint4 as uint4
from clew._C import uint5 as uint5
from clew._C import uint6 as uint6
from clew._C import uint7 as uint7
from clew._ops.calculus import cumulative_trapezoid as cumulative_trapezoid
from clew._ops.calculus import gradient as gradient
from clew._ops.calculus import trapezoid as trapezoid
from clew._ops.calculus import trapz as trapz
from clew._ops.copies import alias_copy as alias_copy
from clew._ops.copies import as_strided_copy as as_strided_copy
from clew._ops.copies import detach_copy as detach_copy
from clew._ops.copies import diagonal_copy as diagonal_copy
from clew._ops.copies import expand_copy as expand_copy
from clew._ops.copies import permute_copy as permute_copy
from clew._ops.copies import select_copy as select_copy
from clew._ops.copies import slice_copy as slice_copy
from clew._ops.copies import split_copy as split_copy
from clew._ops.copies import split_with_sizes_copy as split_with_sizes_copy
from clew._ops.copies import squeeze_copy as squeeze_copy
from clew._ops.copies import t_copy as t_copy
from clew._ops.copies import transpose_copy as transpose_copy
from clew._ops.copies import unbind_copy as unbind_copy
from clew._ops.copies import unfold_copy as unfold_copy
from clew._ops.copies import unsqueeze_copy as unsqueeze_copy
from clew._ops.copies import view_as_complex_copy as view_as_complex_copy
from clew._ops.copies import view_as_real_copy as view_as_real_copy
from clew._ops.copies import view_copy as view_copy
from clew._ops.foreach import (
    _amp_foreach_non_finite_check_and_unscale_ as _amp_foreach_non_finite_check_and_unscale_,
)
from clew._ops.foreach import _foreach_abs as _foreach_abs
from clew._ops.foreach import _foreach_abs_ as _foreach_abs_
from clew._ops.foreach import _foreach_acos as _foreach_acos
from clew._ops.foreach import _foreach_acos_ as _foreach_acos_
from clew._ops.foreach import _foreach_add as _foreach_add
from clew._ops.foreach import _foreach_add_ as _foreach_add_
from clew._ops.foreach import _foreach_addcdiv as _foreach_addcdiv
from clew._ops.foreach import _foreach_addcdiv_ as _foreach_addcdiv_
from clew._ops.foreach import _foreach_addcmul as _foreach_addcmul
from clew._ops.foreach import _foreach_addcmul_ as _foreach_addcmul_
from clew._ops.foreach import _foreach_asin as _foreach_asin
from clew._ops.foreach import _foreach_asin_ as _foreach_asin_
from clew._ops.foreach import _foreach_atan as _foreach_atan
from clew._ops.foreach import _foreach_atan_ as _foreach_atan_
from clew._ops.foreach import _foreach_ceil as _foreach_ceil
from clew._ops.foreach import _foreach_ceil_ as _foreach_ceil_
from clew._ops.foreach import _foreach_clamp_max as _foreach_clamp_max
from clew._ops.foreach import _foreach_clamp_max_ as _foreach_clamp_max_
from clew._ops.foreach import _foreach_clamp_min as _foreach_clamp_min
from clew._ops.foreach import _foreach_clamp_min_ as _foreach_clamp_min_
from clew._ops.foreach import _foreach_clone as _foreach_clone
from clew._ops.foreach import _foreach_copy_ as _foreach_copy_
from clew._ops.foreach import _foreach_cos as _foreach_cos
from clew._ops.foreach import _foreach_cos_ as _foreach_cos_
from clew._ops.foreach import _foreach_cosh as _foreach_cosh
from clew._ops.foreach import _foreach_cosh_ as _foreach_cosh_
from clew._ops.foreach import _foreach_div as _foreach_div
from clew._ops.foreach import _foreach_div_ as _foreach_div_
from clew._ops.foreach import _foreach_erf as _foreach_erf
from clew._ops.foreach import _foreach_erf_ as _foreach_erf_
from clew._ops.foreach import _foreach_erfc as _foreach_erfc
from clew._ops.foreach import _foreach_erfc_ as _foreach_erfc_
from clew._ops.foreach import _foreach_exp as _foreach_exp
from clew._ops.foreach import _foreach_exp_ as _foreach_exp_
from clew._ops.foreach import _foreach_expm1 as _foreach_expm1
from clew._ops.foreach import _foreach_expm1_ as _foreach_expm1_
from clew._ops.foreach import _foreach_floor as _foreach_floor
from clew._ops.foreach import _foreach_floor_ as _foreach_floor_
from clew._ops.foreach import _foreach_frac as _foreach_frac
from clew._ops.foreach import _foreach_frac_ as _foreach_frac_
from clew._ops.foreach import _foreach_lerp as _foreach_lerp
from clew._ops.foreach import _foreach_lerp_ as _foreach_lerp_
from clew._ops.foreach import _foreach_lgamma as _foreach_lgamma
from clew._ops.foreach import _foreach_lgamma_ as _foreach_lgamma_
from clew._ops.foreach import _foreach_log as _foreach_log
from clew._ops.foreach import _foreach_log10 as _foreach_log10
from clew._ops.foreach import _foreach_log10_ as _foreach_log10_
from clew._ops.foreach import _foreach_log1p as _foreach_log1p
from clew._ops.foreach import _foreach_log1p_ as _foreach_log1p_
from clew._ops.foreach import _foreach_log2 as _foreach_log2
from clew._ops.foreach import _foreach_log2_ as _foreach_log2_
from clew._ops.foreach import _foreach_log_ as _foreach_log_
from clew._ops.foreach import _foreach_max as _foreach_max
from clew._ops.foreach import _foreach_maximum as _foreach_maximum
from clew._ops.foreach import _foreach_maximum_ as _foreach_maximum_
from clew._ops.foreach import _foreach_minimum as _foreach_minimum
from clew._ops.foreach import _foreach_minimum_ as _foreach_minimum_
from clew._ops.foreach import _foreach_mm as _foreach_mm
from clew._ops.foreach import _foreach_mul as _foreach_mul
from clew._ops.foreach import _foreach_mul_ as _foreach_mul_
from clew._ops.foreach import _foreach_neg as _foreach_neg
from clew._ops.foreach import _foreach_neg_ as _foreach_neg_
from clew._ops.foreach import _foreach_norm as _foreach_norm
from clew._ops.foreach import _foreach_pow as _foreach_pow
from clew._ops.foreach import _foreach_pow_ as _foreach_pow_
from clew._ops.foreach import _foreach_powsum as _foreach_powsum
from clew._ops.foreach import _foreach_reciprocal as _foreach_reciprocal
from clew._ops.foreach import _foreach_reciprocal_ as _foreach_reciprocal_
from clew._ops.foreach import _foreach_round as _foreach_round
from clew._ops.foreach import _foreach_round_ as _foreach_round_
from clew._ops.foreach import _foreach_rsqrt as _foreach_rsqrt
from clew._ops.foreach import _foreach_rsqrt_ as _foreach_rsqrt_
from clew._ops.foreach import _foreach_sigmoid as _foreach_sigmoid
from clew._ops.foreach import _foreach_sigmoid_ as _foreach_sigmoid_
from clew._ops.foreach import _foreach_sign as _foreach_sign
from clew._ops.foreach import _foreach_sign_ as _foreach_sign_
from clew._ops.foreach import _foreach_sin as _foreach_sin
from clew._ops.foreach import _foreach_sin_ as _foreach_sin_
from clew._ops.foreach import _foreach_sinh as _foreach_sinh
from clew._ops.foreach import _foreach_sinh_ as _foreach_sinh_
from clew._ops.foreach import _foreach_sqrt as _foreach_sqrt
from clew._ops.foreach import _foreach_sqrt_ as _foreach_sqrt_
from clew._ops.foreach import _foreach_sub as _foreach_sub
from clew._ops.foreach import _foreach_sub_ as _foreach_sub_
from clew._ops.foreach import _foreach_tan as _foreach_tan
from clew._ops.foreach import _foreach_tan_ as _foreach_tan_
from clew._ops.foreach import _foreach_tanh as _foreach_tanh
from clew._ops.foreach import _foreach_tanh_ as _foreach_tanh_
from clew._ops.foreach import _foreach_trunc as _foreach_trunc
from clew._ops.foreach import _foreach_trunc_ as _foreach_trunc_
from clew._ops.foreach import _foreach_zero_ as _foreach_zero_
from clew._ops.histogram import histc as histc
from clew._ops.histogram import histogram as histogram
from clew._ops.histogram import histogramdd as histogramdd
from clew._ops.legacy import BFloat16Tensor as BFloat16Tensor
from clew._ops.legacy import BoolTensor as BoolTensor
from clew._ops.legacy import ByteTensor as ByteTensor
from clew._ops.legacy import CharTensor as CharTensor
from clew._ops.legacy import ComplexDoubleTensor as ComplexDoubleTensor
from clew._ops.legacy import ComplexFloatTensor as ComplexFloatTensor
from clew._ops.legacy import DoubleTensor as DoubleTensor
from clew._ops.legacy import FloatTensor as FloatTensor
from clew._ops.legacy import HalfTensor as HalfTensor
from clew._ops.legacy import IntTensor as IntTensor
from clew._ops.legacy import LongTensor as LongTensor
from clew._ops.legacy import ShortTensor as ShortTensor
from clew._ops.legacy import UInt16Tensor as UInt16Tensor
from clew._ops.legacy import UInt32Tensor as UInt32Tensor
from clew._ops.legacy import UInt64Tensor as UInt64Tensor
from clew._ops.legacy import set_default_tensor_type as set_default_tensor_type
from clew._ops.legacy import tensortype as tensortype
from clew._ops.memory import from_file as from_file
from clew._ops.native import _batch_norm_with_update as _batch_norm_with_update
from clew._ops.native import _chunk_cat as _chunk_cat
from clew._ops.native import _native_batch_norm_legit as _native_batch_norm_legit
from clew._ops.native import _safe_softmax as _safe_softmax
from clew._ops.native import _segment_reduce as _segment_reduce
from clew._ops.native import _softmax_backward_data as _softmax_backward_data
from clew._ops.native import _unsafe_masked_index as _unsafe_masked_index
from clew._ops.native import (
    _unsafe_masked_index_put_accumulate as _unsafe_masked_index_put_accumulate,
)
from clew._ops.native import max_pool2d_with_indices_backward as max_pool2d_with_indices_backward
from clew._ops.native import native_batch_norm as native_batch_norm
from clew._ops.native import native_dropout as native_dropout
from clew._ops.native import native_dropout_backward as native_dropout_backward
from clew._ops.native import native_group_norm as native_group_norm
from clew._ops.native import native_layer_norm as native_layer_norm
from clew._ops.native import native_norm as native_norm
from clew._ops.native import norm_except_dim as norm_except_dim
from clew._ops.native import segment_reduce as segment_reduce
from clew._ops.random import binomial as binomial
from clew._ops.scattering import as_strided_scatter as as_strided_scatter
from clew._ops.scattering import diagonal_scatter as diagonal_scatter
from clew._ops.scattering import index_put as index_put
from clew._ops.scattering import index_put_ as index_put_
from clew._ops.scattering import index_reduce as index_reduce
from clew._ops.scattering import nonzero as nonzero
from clew._ops.scattering import select_scatter as select_scatter
from clew._ops.scattering import slice_scatter as slice_scatter
from clew._ops.scattering import unravel_index as unravel_index
from clew._ops.statistics import corrcoef as corrcoef
from clew._ops.statistics import cov as cov
from clew._ops.statistics import isin as isin
from clew._ops.statistics import nanquantile as nanquantile
from clew._ops.statistics import quantile as quantile
from clew._ops.statistics import renorm as renorm
from clew._ops.tensors import alpha_dropout_ as alpha_dropout_
from clew._ops.tensors import as_strided_ as as_strided_
from clew._ops.tensors import detach_ as detach_
from clew._ops.tensors import dropout_ as dropout_
from clew._ops.tensors import empty_permuted as empty_permuted
from clew._ops.tensors import feature_alpha_dropout_ as feature_alpha_dropout_
from clew._ops.tensors import feature_dropout_ as feature_dropout_
from clew._ops.tensors import fill_ as fill_
from clew._ops.tensors import frexp as frexp
from clew._ops.tensors import frobenius_norm as frobenius_norm
from clew._ops.tensors import get_device as get_device
from clew._ops.tensors import hash_tensor as hash_tensor
from clew._ops.tensors import is_conj as is_conj
from clew._ops.tensors import is_inference as is_inference
from clew._ops.tensors import is_neg as is_neg
from clew._ops.tensors import is_same_size as is_same_size
from clew._ops.tensors import is_signed as is_signed
from clew._ops.tensors import nonzero_static as nonzero_static
from clew._ops.tensors import resize_as_ as resize_as_
from clew._ops.tensors import slice_inverse as slice_inverse
from clew._ops.tensors import zero_ as zero_
from clew.amp import GradScaler as GradScaler
from clew.amp import autocast as autocast
from clew.autograd.anomaly_mode import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from clew.autograd.anomaly_mode import is_anomaly_enabled as is_anomaly_enabled
from clew.autograd.anomaly_mode import set_anomaly_enabled as set_anomaly_enabled
from clew.amp._state import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from clew.amp._state import get_autocast_dtype as get_autocast_dtype
from clew.amp._state import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from clew.amp._state import is_autocast_cache_enabled as is_autocast_cache_enabled
from clew.amp._state import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from clew.amp._state import is_autocast_enabled as is_autocast_enabled
from clew.amp._state import set_autocast_cache_enabled as set_autocast_cache_enabled
from clew.amp._state import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from clew.amp._state import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from clew.amp._state import set_autocast_dtype as set_autocast_dtype
from clew.amp._state import set_autocast_enabled as set_autocast_enabled
from clew.amp._state import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from clew._tensor.array_namespace import __array_namespace__ as __array_namespace__
from clew.array_api import __array_namespace_info__ as __array_namespace_info__
from clew.array_api import astype as astype
from clew.array_api import bitwise_invert as bitwise_invert
from clew.array_api import broadcast_arrays as broadcast_arrays
from clew.array_api import cumulative_prod as cumulative_prod
from clew.array_api import cumulative_sum as cumulative_sum
from clew.array_api import expand_dims as expand_dims
from clew.array_api import isdtype as isdtype
from clew.array_api import matrix_transpose as matrix_transpose
from clew.array_api import permute_dims as permute_dims
from clew.array_api import take_along_axis as take_along_axis
from clew.array_api import unique_all as unique_all
from clew.array_api import unique_counts as unique_counts
from clew.array_api import unique_inverse as unique_inverse
from clew.array_api import unique_values as unique_values
from clew.array_api import unstack as unstack
from clew.array_api import vecdot as vecdot
from clew._base.dtypes import jagged as jagged
from clew._base.dtypes import sparse_bsc as sparse_bsc
from clew._base.dtypes import sparse_bsr as sparse_bsr
from clew._base.dtypes import sparse_coo as sparse_coo
from clew._base.dtypes import sparse_csc as sparse_csc
from clew._base.dtypes import sparse_csr as sparse_csr
from clew.sparse import dsmm as dsmm
from clew.sparse import hspmm as hspmm
from clew.sparse import smm as smm
from clew.sparse import sparse_bsc_tensor as sparse_bsc_tensor
from clew.sparse import sparse_bsr_tensor as sparse_bsr_tensor
from clew.sparse import sparse_compressed_tensor as sparse_compressed_tensor
from clew.sparse import sparse_coo_tensor as sparse_coo_tensor
from clew.sparse import sparse_csc_tensor as sparse_csc_tensor
from clew.sparse import sparse_csr_tensor as sparse_csr_tensor
from clew.sparse import sspaddmm as sspaddmm
from clew.storage import BFloat16Storage as BFloat16Storage
from clew.storage import BoolStorage as BoolStorage
from clew.storage import ByteStorage as ByteStorage
from clew.storage import CharStorage as CharStorage
from clew.storage import ComplexDoubleStorage as ComplexDoubleStorage
from clew.storage import ComplexFloatStorage as ComplexFloatStorage
from clew.storage import DoubleStorage as DoubleStorage
from clew.storage import FloatStorage as FloatStorage
from clew.storage import HalfStorage as HalfStorage
from clew.storage import IntStorage as IntStorage
from clew.storage import LongStorage as LongStorage
from clew.storage import ShortStorage as ShortStorage
from clew.storage import TypedStorage as TypedStorage
from clew.storage import UntypedStorage as UntypedStorage
from clew.nn._toplevel import _upsample_bilinear2d_aa as _upsample_bilinear2d_aa
from clew.nn._toplevel import adaptive_max_pool1d as adaptive_max_pool1d
from clew.nn._toplevel import affine_grid_generator as affine_grid_generator
from clew.nn._toplevel import batch_norm as batch_norm
from clew.nn._toplevel import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from clew.nn._toplevel import cosine_embedding_loss as cosine_embedding_loss
from clew.nn._toplevel import ctc_loss as ctc_loss
from clew.nn._toplevel import embedding_bag as embedding_bag
from clew.nn._toplevel import grid_sampler as grid_sampler
from clew.nn._toplevel import grid_sampler_2d as grid_sampler_2d
from clew.nn._toplevel import grid_sampler_3d as grid_sampler_3d
from clew.nn._toplevel import group_norm as group_norm
from clew.nn._toplevel import hinge_embedding_loss as hinge_embedding_loss
from clew.nn._toplevel import instance_norm as instance_norm
from clew.nn._toplevel import kl_div as kl_div
from clew.nn._toplevel import layer_norm as layer_norm
from clew.nn._toplevel import margin_ranking_loss as margin_ranking_loss
from clew.nn._toplevel import max_pool1d_with_indices as max_pool1d_with_indices
from clew.nn._toplevel import poisson_nll_loss as poisson_nll_loss
from clew.nn._toplevel import rrelu as rrelu
from clew.nn._toplevel import rrelu_ as rrelu_
from clew.nn._toplevel import triplet_margin_loss as triplet_margin_loss
from clew.nn.functional import adaptive_avg_pool1d as adaptive_avg_pool1d
from clew.nn.functional import avg_pool1d as avg_pool1d
from clew.nn.functional import bilinear as bilinear
from clew.nn.functional import channel_shuffle as channel_shuffle
from clew.nn.functional import conv_tbc as conv_tbc
from clew.nn.functional import cosine_similarity as cosine_similarity
from clew.nn.functional import embedding_renorm_ as embedding_renorm_
from clew.nn.functional import max_pool1d as max_pool1d
from clew.nn.functional import max_pool2d as max_pool2d
from clew.nn.functional import max_pool3d as max_pool3d
from clew.nn.functional import native_channel_shuffle as native_channel_shuffle
from clew.nn.functional import pairwise_distance as pairwise_distance
from clew.nn.functional import pdist as pdist
from clew.nn.functional import pixel_shuffle as pixel_shuffle
from clew.nn.functional import pixel_unshuffle as pixel_unshuffle
from clew.nn.functional import rms_norm as rms_norm
from clew.special._gamma import igamma as igamma
from clew.special._gamma import igammac as igammac
from clew.signal._stft import istft as istft
from clew.signal._stft import stft as stft
from clew.signal._window_functions import bartlett_window as bartlett_window
from clew.signal._window_functions import blackman_window as blackman_window
from clew.signal._window_functions import hamming_window as hamming_window
from clew.signal._window_functions import hann_window as hann_window
from clew.signal._window_functions import kaiser_window as kaiser_window
from clew.linalg._toplevel import cholesky as cholesky
from clew.linalg._toplevel import cholesky_inverse as cholesky_inverse
from clew.linalg._toplevel import cholesky_solve as cholesky_solve
from clew.linalg._toplevel import det as det
from clew.linalg._toplevel import geqrf as geqrf
from clew.linalg._toplevel import inverse as inverse
from clew.linalg._toplevel import logdet as logdet
from clew.linalg._toplevel import lu as lu
from clew.linalg._toplevel import lu_solve as lu_solve
from clew.linalg._toplevel import matrix_exp as matrix_exp
from clew.linalg._toplevel import matrix_power as matrix_power
from clew.linalg._toplevel import orgqr as orgqr
from clew.linalg._toplevel import ormqr as ormqr
from clew.linalg._toplevel import pinverse as pinverse
from clew.linalg._toplevel import qr as qr
from clew.linalg._toplevel import slogdet as slogdet
from clew.linalg._toplevel import svd as svd
from clew.linalg._toplevel import triangular_solve as triangular_solve
from clew.linalg._toplevel import lu_unpack as lu_unpack
from clew.linalg._norms import nuclear_norm as nuclear_norm
from clew.linalg._lowrank import lobpcg as lobpcg
from clew.linalg._lowrank import pca_lowrank as pca_lowrank
from clew.linalg._lowrank import svd_lowrank as svd_lowrank
from clew._C import Generator as Generator
from clew._C import OutOfMemoryError as OutOfMemoryError
from clew._C import Size as Size
from clew._C import Tensor as Tensor
from clew._ops.functions import allclose as allclose
from clew._C import arange as arange
from clew._ops.functions import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from clew._C import as_tensor as as_tensor
from clew._ops.creation import asarray as asarray
from clew._ops.shaping import atleast_1d as atleast_1d
from clew._ops.shaping import atleast_2d as atleast_2d
from clew._ops.shaping import atleast_3d as atleast_3d
from clew._ops.shaping import block_diag as block_diag
from clew._ops.functions import broadcast_shapes as broadcast_shapes
from clew._ops.functions import broadcast_tensors as broadcast_tensors
from clew._ops.functions import can_cast as can_cast
from clew._ops.shaping import cartesian_prod as cartesian_prod
from clew._ops.distances import cdist as cdist
from clew._ops.einsum import chain_matmul as chain_matmul
from clew._base.dtypes import channels_last as channels_last
from clew._base.dtypes import channels_last_3d as channels_last_3d
from clew._ops.functions import clone as clone
from clew._ops.shaping import combinations as combinations
from clew._ops.creation import complex as complex
from clew._ops.shaping import constant_pad_nd as constant_pad_nd
from clew._base.dtypes import contiguous_format as contiguous_format
from clew._ops.functions import cross as cross
from clew._C import default_generator as default_generator
from clew._ops.functions import detach as detach
from clew._C import device as device
from clew._ops.functions import diff as diff
from clew._ops.functions import dist as dist
from clew._C import dtype as dtype
from clew._ops.einsum import einsum as einsum
from clew._ops.shaping import embedding as embedding
from clew._C import empty as empty
from clew._C import empty_cache as empty_cache
from clew._C import empty_like as empty_like
from clew._C import empty_strided as empty_strided
from clew.autograd.grad_mode import enable_grad as enable_grad
from clew._ops.functions import equal as equal
from clew._C import eye as eye
from clew._ops.creation import fill as fill
from clew._base.dtypes import finfo as finfo
from clew._C import from_dlpack as from_dlpack
from clew._C import from_numpy as from_numpy
from clew._C import frombuffer as frombuffer
from clew._C import full as full
from clew._C import full_like as full_like
from clew._ops.functions import get_default_device as get_default_device
from clew._C import get_default_dtype as get_default_dtype
from clew._ops.functions import get_float32_matmul_precision as get_float32_matmul_precision
from clew._ops.functions import get_num_interop_threads as get_num_interop_threads
from clew._C import get_num_threads as get_num_threads
from clew._ops.creation import get_printoptions as get_printoptions
from clew._ops.creation import get_rng_state as get_rng_state
from clew._base.dtypes import iinfo as iinfo
from clew.autograd.grad_mode import inference_mode as inference_mode
from clew._ops.creation import initial_seed as initial_seed
from clew._ops.functions import is_complex as is_complex
from clew._ops.functions import is_floating_point as is_floating_point
from clew._C import is_grad_enabled as is_grad_enabled
from clew._C import is_inference_mode_enabled as is_inference_mode_enabled
from clew._ops.functions import is_nonzero as is_nonzero
from clew._ops.functions import is_storage as is_storage
from clew._ops.functions import is_tensor as is_tensor
from clew._base.dtypes import layout as layout
from clew._C import linspace as linspace
from clew._C import logspace as logspace
from clew._ops.creation import manual_seed as manual_seed
from clew._base.dtypes import memory_format as memory_format
from clew._ops.functions import memory_stats as memory_stats
from clew._ops.shaping import meshgrid as meshgrid
from clew._ops.shaping import narrow_copy as narrow_copy
from clew.autograd.grad_mode import no_grad as no_grad
from clew._ops.functions import norm as norm
from clew._ops.creation import normal as normal
from clew._ops.functions import numel as numel
from clew._C import ones as ones
from clew._C import ones_like as ones_like
from clew._ops.creation import polar as polar
from clew._base.dtypes import preserve_format as preserve_format
from clew._ops.functions import promote_types as promote_types
from clew._C import rand as rand
from clew._C import rand_like as rand_like
from clew._C import randint as randint
from clew._C import randint_like as randint_like
from clew._C import randn as randn
from clew._C import randn_like as randn_like
from clew._C import randperm as randperm
from clew._C import range as range
from clew._C import reset_peak_memory_stats as reset_peak_memory_stats
from clew._ops.functions import result_type as result_type
from clew._C import scalar_tensor as scalar_tensor
from clew._ops.creation import seed as seed
from clew._ops.functions import set_default_device as set_default_device
from clew._ops.functions import set_default_dtype as set_default_dtype
from clew._ops.functions import set_float32_matmul_precision as set_float32_matmul_precision
from clew._ops.functions import set_flush_denormal as set_flush_denormal
from clew.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from clew._ops.functions import set_num_interop_threads as set_num_interop_threads
from clew._C import set_num_threads as set_num_threads
from clew._ops.creation import set_printoptions as set_printoptions
from clew._ops.creation import set_rng_state as set_rng_state
from clew._base.dtypes import strided as strided
from clew._C import tensor as tensor
from clew._ops.einsum import tensordot as tensordot
from clew._ops.creation import to_dlpack as to_dlpack
from clew._ops.functions import trace as trace
from clew._C import tril_indices as tril_indices
from clew._C import triu_indices as triu_indices
from clew._ops.functions import typename as typename
from clew._ops.functions import unique as unique
from clew._ops.functions import unique_consecutive as unique_consecutive
from clew._ops.shaping import unsafe_chunk as unsafe_chunk
from clew._ops.shaping import unsafe_split as unsafe_split
from clew._ops.shaping import unsafe_split_with_sizes as unsafe_split_with_sizes
from clew._ops.functions import use_deterministic_algorithms as use_deterministic_algorithms
from clew._ops.creation import vander as vander
from clew._C import zeros as zeros
from clew._C import zeros_like as zeros_like

def abs(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def abs_(input: Tensor) -> Tensor: ...
def absolute(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def absolute_(input: Tensor) -> Tensor: ...
def acos(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def acos_(input: Tensor) -> Tensor: ...
def acosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def acosh_(input: Tensor) -> Tensor: ...
@overload
def add(
    input: Tensor | Number, other: Tensor | Number, *, alpha: Number = ..., out: Tensor | None = ...
) -> Tensor: ...
@overload
def add(
    input: Tensor, alpha: Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def add_(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = ...) -> Tensor: ...
@overload
def add_(input: Tensor, alpha: Number, other: Tensor | Number) -> Tensor: ...
@overload
def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Number = ...,
    alpha: Number = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addbmm(
    beta: Number, input: Tensor, batch1: Tensor, batch2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addbmm(
    beta: Number,
    input: Tensor,
    alpha: Number,
    batch1: Tensor,
    batch2: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addbmm(
    input: Tensor, beta: Number, batch1: Tensor, batch2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addbmm(
    input: Tensor,
    beta: Number,
    alpha: Number,
    batch1: Tensor,
    batch2: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addbmm_(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = ..., alpha: Number = ...
) -> Tensor: ...
@overload
def addbmm_(beta: Number, input: Tensor, batch1: Tensor, batch2: Tensor) -> Tensor: ...
@overload
def addbmm_(
    beta: Number, input: Tensor, alpha: Number, batch1: Tensor, batch2: Tensor
) -> Tensor: ...
@overload
def addbmm_(input: Tensor, beta: Number, batch1: Tensor, batch2: Tensor) -> Tensor: ...
@overload
def addbmm_(
    input: Tensor, beta: Number, alpha: Number, batch1: Tensor, batch2: Tensor
) -> Tensor: ...
@overload
def addcdiv(
    input: Tensor,
    tensor1: Tensor,
    tensor2: Tensor,
    *,
    value: Number = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addcdiv(
    input: Tensor, value: Number, tensor1: Tensor, tensor2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = ...) -> Tensor: ...
@overload
def addcdiv_(input: Tensor, value: Number, tensor1: Tensor, tensor2: Tensor) -> Tensor: ...
@overload
def addcmul(
    input: Tensor,
    tensor1: Tensor,
    tensor2: Tensor,
    *,
    value: Number = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addcmul(
    input: Tensor, value: Number, tensor1: Tensor, tensor2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = ...) -> Tensor: ...
@overload
def addcmul_(input: Tensor, value: Number, tensor1: Tensor, tensor2: Tensor) -> Tensor: ...
@overload
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Number = ...,
    alpha: Number = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addmm(
    beta: Number, input: Tensor, mat1: Tensor, mat2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addmm(
    beta: Number,
    input: Tensor,
    alpha: Number,
    mat1: Tensor,
    mat2: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addmm(
    input: Tensor, beta: Number, mat1: Tensor, mat2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addmm(
    input: Tensor,
    beta: Number,
    alpha: Number,
    mat1: Tensor,
    mat2: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addmm_(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = ..., alpha: Number = ...
) -> Tensor: ...
@overload
def addmm_(beta: Number, input: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor: ...
@overload
def addmm_(beta: Number, input: Tensor, alpha: Number, mat1: Tensor, mat2: Tensor) -> Tensor: ...
@overload
def addmm_(input: Tensor, beta: Number, mat1: Tensor, mat2: Tensor) -> Tensor: ...
@overload
def addmm_(input: Tensor, beta: Number, alpha: Number, mat1: Tensor, mat2: Tensor) -> Tensor: ...
@overload
def addmv(
    input: Tensor,
    mat: Tensor,
    vec: Tensor,
    *,
    beta: Number = ...,
    alpha: Number = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addmv(
    beta: Number, input: Tensor, mat: Tensor, vec: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addmv(
    beta: Number,
    input: Tensor,
    alpha: Number,
    mat: Tensor,
    vec: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addmv(
    input: Tensor, beta: Number, mat: Tensor, vec: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addmv(
    input: Tensor,
    beta: Number,
    alpha: Number,
    mat: Tensor,
    vec: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addmv_(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = ..., alpha: Number = ...
) -> Tensor: ...
@overload
def addmv_(beta: Number, input: Tensor, mat: Tensor, vec: Tensor) -> Tensor: ...
@overload
def addmv_(beta: Number, input: Tensor, alpha: Number, mat: Tensor, vec: Tensor) -> Tensor: ...
@overload
def addmv_(input: Tensor, beta: Number, mat: Tensor, vec: Tensor) -> Tensor: ...
@overload
def addmv_(input: Tensor, beta: Number, alpha: Number, mat: Tensor, vec: Tensor) -> Tensor: ...
@overload
def addr(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    *,
    beta: Number = ...,
    alpha: Number = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addr(
    beta: Number, input: Tensor, vec1: Tensor, vec2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addr(
    beta: Number,
    input: Tensor,
    alpha: Number,
    vec1: Tensor,
    vec2: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addr(
    input: Tensor, beta: Number, vec1: Tensor, vec2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def addr(
    input: Tensor,
    beta: Number,
    alpha: Number,
    vec1: Tensor,
    vec2: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def addr_(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = ..., alpha: Number = ...
) -> Tensor: ...
@overload
def addr_(beta: Number, input: Tensor, vec1: Tensor, vec2: Tensor) -> Tensor: ...
@overload
def addr_(beta: Number, input: Tensor, alpha: Number, vec1: Tensor, vec2: Tensor) -> Tensor: ...
@overload
def addr_(input: Tensor, beta: Number, vec1: Tensor, vec2: Tensor) -> Tensor: ...
@overload
def addr_(input: Tensor, beta: Number, alpha: Number, vec1: Tensor, vec2: Tensor) -> Tensor: ...
def adjoint(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def all(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    keepdim: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def alpha_dropout(
    input: Tensor, p: _float, train: _bool, *, out: Tensor | None = ...
) -> Tensor: ...
def amax(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    keepdim: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def amin(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    keepdim: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def aminmax(
    input: Tensor,
    *,
    dim: _int | None = ...,
    keepdim: _bool = ...,
    out: Sequence[Tensor] | None = ...,
) -> _MinMax: ...
def angle(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def angle_(input: Tensor) -> Tensor: ...
def any(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    keepdim: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def arccos(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def arccos_(input: Tensor) -> Tensor: ...
def arccosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def arccosh_(input: Tensor) -> Tensor: ...
def arcsin(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def arcsin_(input: Tensor) -> Tensor: ...
def arcsinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def arcsinh_(input: Tensor) -> Tensor: ...
def arctan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def arctan2_(input: Tensor, other: Tensor) -> Tensor: ...
def arctan_(input: Tensor) -> Tensor: ...
def arctanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def arctanh_(input: Tensor) -> Tensor: ...
def argmax(
    input: Tensor, dim: _int | None = ..., keepdim: _bool = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def argmin(
    input: Tensor, dim: _int | None = ..., keepdim: _bool = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def argsort(
    input: Tensor,
    dim: _int = ...,
    descending: _bool = ...,
    stable: _bool | None = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def argwhere(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def as_strided(
    input: Tensor,
    size: _int | Sequence[_int],
    stride: _int | Sequence[_int],
    storage_offset: _int | None = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def asin(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def asin_(input: Tensor) -> Tensor: ...
def asinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def asinh_(input: Tensor) -> Tensor: ...
def atan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def atan2_(input: Tensor, other: Tensor) -> Tensor: ...
def atan_(input: Tensor) -> Tensor: ...
def atanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def atanh_(input: Tensor) -> Tensor: ...
@overload
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Number = ...,
    alpha: Number = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def baddbmm(
    beta: Number, input: Tensor, batch1: Tensor, batch2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def baddbmm(
    beta: Number,
    input: Tensor,
    alpha: Number,
    batch1: Tensor,
    batch2: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def baddbmm(
    input: Tensor, beta: Number, batch1: Tensor, batch2: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def baddbmm(
    input: Tensor,
    beta: Number,
    alpha: Number,
    batch1: Tensor,
    batch2: Tensor,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def baddbmm_(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = ..., alpha: Number = ...
) -> Tensor: ...
@overload
def baddbmm_(beta: Number, input: Tensor, batch1: Tensor, batch2: Tensor) -> Tensor: ...
@overload
def baddbmm_(
    beta: Number, input: Tensor, alpha: Number, batch1: Tensor, batch2: Tensor
) -> Tensor: ...
@overload
def baddbmm_(input: Tensor, beta: Number, batch1: Tensor, batch2: Tensor) -> Tensor: ...
@overload
def baddbmm_(
    input: Tensor, beta: Number, alpha: Number, batch1: Tensor, batch2: Tensor
) -> Tensor: ...
@overload
def bernoulli(
    input: Tensor, *, generator: Generator | None = ..., out: Tensor | None = ...
) -> Tensor: ...
@overload
def bernoulli(
    input: Tensor, p: _float, *, generator: Generator | None = ..., out: Tensor | None = ...
) -> Tensor: ...

bfloat16: _dtype

def bincount(
    input: Tensor, weights: Tensor | None = ..., minlength: _int = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def bitwise_and(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def bitwise_and_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def bitwise_left_shift(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def bitwise_left_shift_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def bitwise_not(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def bitwise_not_(input: Tensor) -> Tensor: ...
def bitwise_or(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def bitwise_or_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def bitwise_right_shift(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def bitwise_right_shift_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def bitwise_xor(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def bitwise_xor_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = ...) -> Tensor: ...

bool: _dtype

def broadcast_to(
    input: Tensor, *size: _int | Sequence[_int], out: Tensor | None = ...
) -> Tensor: ...
@overload
def bucketize(
    input: Tensor,
    boundaries: Tensor,
    *,
    out_int32: _bool = ...,
    right: _bool = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def bucketize(
    input: Number,
    boundaries: Tensor,
    *,
    out_int32: _bool = ...,
    right: _bool = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def cat(tensors: Sequence[Tensor], dim: _int = ..., *, out: Tensor | None = ...) -> Tensor: ...

cdouble: _dtype

def ceil(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def ceil_(input: Tensor) -> Tensor: ...
def celu(input: Tensor, alpha: _float = ..., *, out: Tensor | None = ...) -> Tensor: ...
def celu_(input: Tensor, alpha: _float = ...) -> Tensor: ...

cfloat: _dtype
chalf: _dtype

def chunk(
    input: Tensor, chunks: _int, dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
@overload
def clamp(
    input: Tensor, min: Number | None = ..., max: Number | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def clamp(
    input: Tensor, min: Tensor | None = ..., max: Tensor | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def clamp_(input: Tensor, min: Number | None = ..., max: Number | None = ...) -> Tensor: ...
@overload
def clamp_(input: Tensor, min: Tensor | None = ..., max: Tensor | None = ...) -> Tensor: ...
def clamp_max(input: Tensor, max: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def clamp_max_(input: Tensor, max: Tensor | Number) -> Tensor: ...
def clamp_min(input: Tensor, min: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def clamp_min_(input: Tensor, min: Tensor | Number) -> Tensor: ...
@overload
def clip(
    input: Tensor, min: Number | None = ..., max: Number | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def clip(
    input: Tensor, min: Tensor | None = ..., max: Tensor | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def clip_(input: Tensor, min: Number | None = ..., max: Number | None = ...) -> Tensor: ...
@overload
def clip_(input: Tensor, min: Tensor | None = ..., max: Tensor | None = ...) -> Tensor: ...
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: ...

complex128: _dtype
complex64: _dtype

def concat(tensors: Sequence[Tensor], dim: _int = ..., *, out: Tensor | None = ...) -> Tensor: ...
def concatenate(
    tensors: Sequence[Tensor], dim: _int = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def conj(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def conj_physical(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def conj_physical_(input: Tensor) -> Tensor: ...
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
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: _int | Sequence[_int],
    padding: _int | Sequence[_int],
    dilation: _int | Sequence[_int],
    transposed: _bool,
    output_padding: _int | Sequence[_int],
    groups: _int,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def copysign(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def copysign_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def cos(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def cos_(input: Tensor) -> Tensor: ...
def cosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def cosh_(input: Tensor) -> Tensor: ...
def count_nonzero(
    input: Tensor, *dim: _int | Sequence[_int], out: Tensor | None = ...
) -> Tensor: ...
def cummax(input: Tensor, dim: _int, *, out: Sequence[Tensor] | None = ...) -> _ValuesIndices: ...
def cummin(input: Tensor, dim: _int, *, out: Sequence[Tensor] | None = ...) -> _ValuesIndices: ...
def cumprod(
    input: Tensor, dim: _int, *, dtype: _dtype | None = ..., out: Tensor | None = ...
) -> Tensor: ...
def cumprod_(input: Tensor, dim: _int, *, dtype: _dtype | None = ...) -> Tensor: ...
def cumsum(
    input: Tensor, dim: _int, *, dtype: _dtype | None = ..., out: Tensor | None = ...
) -> Tensor: ...
def cumsum_(input: Tensor, dim: _int, *, dtype: _dtype | None = ...) -> Tensor: ...
def deg2rad(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def deg2rad_(input: Tensor) -> Tensor: ...
def diag(input: Tensor, diagonal: _int = ..., *, out: Tensor | None = ...) -> Tensor: ...
def diag_embed(
    input: Tensor,
    offset: _int = ...,
    dim1: _int = ...,
    dim2: _int = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def diagflat(input: Tensor, offset: _int = ..., *, out: Tensor | None = ...) -> Tensor: ...
def diagonal(
    input: Tensor,
    offset: _int = ...,
    dim1: _int = ...,
    dim2: _int = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def digamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def digamma_(input: Tensor) -> Tensor: ...
@overload
def div(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def div(
    input: Tensor | Number,
    other: Tensor | Number,
    *,
    rounding_mode: _str | None,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def div_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
@overload
def div_(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _str | None
) -> Tensor: ...
@overload
def divide(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def divide(
    input: Tensor | Number,
    other: Tensor | Number,
    *,
    rounding_mode: _str | None,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def divide_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
@overload
def divide_(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _str | None
) -> Tensor: ...
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = ...) -> Tensor: ...

double: _dtype

def dropout(input: Tensor, p: _float, train: _bool, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def dsplit(
    input: Tensor, indices_or_sections: _int, *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
@overload
def dsplit(
    input: Tensor, indices_or_sections: _int | Sequence[_int], *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: ...

e: _float

def eq(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def eq_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def erf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def erf_(input: Tensor) -> Tensor: ...
def erfc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def erfc_(input: Tensor) -> Tensor: ...
def erfinv(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def erfinv_(input: Tensor) -> Tensor: ...
def exp(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def exp2(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def exp2_(input: Tensor) -> Tensor: ...
def exp_(input: Tensor) -> Tensor: ...
def expm1(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def expm1_(input: Tensor) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor, p: _float, train: _bool, *, out: Tensor | None = ...
) -> Tensor: ...
def feature_dropout(
    input: Tensor, p: _float, train: _bool, *, out: Tensor | None = ...
) -> Tensor: ...
def fix(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def fix_(input: Tensor) -> Tensor: ...
def flatten(
    input: Tensor, start_dim: _int = ..., end_dim: _int = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def flip(input: Tensor, *dims: _int | Sequence[_int], out: Tensor | None = ...) -> Tensor: ...
def fliplr(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def flipud(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...

float: _dtype
float16: _dtype
float32: _dtype
float64: _dtype

@overload
def float_power(
    input: Tensor, exponent: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def float_power(input: Number, exponent: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def float_power_(input: Tensor, exponent: Tensor | Number) -> Tensor: ...
@overload
def float_power_(input: Number, exponent: Tensor) -> Tensor: ...
def floor(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def floor_(input: Tensor) -> Tensor: ...
def floor_divide(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def floor_divide_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def fmax_(input: Tensor, other: Tensor) -> Tensor: ...
def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def fmin_(input: Tensor, other: Tensor) -> Tensor: ...
def fmod(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def fmod_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def frac(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def frac_(input: Tensor) -> Tensor: ...
def gather(
    input: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = ..., out: Tensor | None = ...
) -> Tensor: ...
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def gcd_(input: Tensor, other: Tensor) -> Tensor: ...
def ge(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def ge_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def greater(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def greater_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def greater_equal(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def greater_equal_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def gt(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def gt_(input: Tensor, other: Tensor | Number) -> Tensor: ...

half: _dtype

def hardshrink(input: Tensor, lambd: Number = ..., *, out: Tensor | None = ...) -> Tensor: ...
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def heaviside_(input: Tensor, values: Tensor) -> Tensor: ...
@overload
def hsplit(
    input: Tensor, indices_or_sections: _int, *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
@overload
def hsplit(
    input: Tensor, indices_or_sections: _int | Sequence[_int], *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: ...
def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def hypot_(input: Tensor, other: Tensor) -> Tensor: ...
def i0(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def i0_(input: Tensor) -> Tensor: ...
def imag(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def index_add(
    input: Tensor,
    dim: _int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: Number = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def index_add_(
    input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: Number = ...
) -> Tensor: ...
def index_copy(
    input: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
def index_copy_(input: Tensor, dim: _int, index: Tensor, source: Tensor) -> Tensor: ...
def index_fill(
    input: Tensor, dim: _int, index: Tensor, value: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def index_fill_(input: Tensor, dim: _int, index: Tensor, value: Tensor | Number) -> Tensor: ...
def index_select(
    input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...

inf: _float

def inner(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...

int: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
int8: _dtype

def isclose(
    input: Tensor,
    other: Tensor,
    rtol: _float = ...,
    atol: _float = ...,
    equal_nan: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def isfinite(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def isinf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def isnan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def isneginf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def isposinf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def isreal(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def kthvalue(
    input: Tensor,
    k: _int,
    dim: _int = ...,
    keepdim: _bool = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> _ValuesIndices: ...
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def lcm_(input: Tensor, other: Tensor) -> Tensor: ...
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def ldexp_(input: Tensor, other: Tensor) -> Tensor: ...
def le(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def le_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def lerp(
    input: Tensor, end: Tensor, weight: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def lerp_(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor: ...
def less(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def less_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def less_equal(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def less_equal_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def lgamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def lgamma_(input: Tensor) -> Tensor: ...
def log(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def log10(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def log10_(input: Tensor) -> Tensor: ...
def log1p(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def log1p_(input: Tensor) -> Tensor: ...
def log2(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def log2_(input: Tensor) -> Tensor: ...
def log_(input: Tensor) -> Tensor: ...
def log_softmax(
    input: Tensor, dim: _int, dtype: _dtype | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def logaddexp2_(input: Tensor, other: Tensor) -> Tensor: ...
def logaddexp_(input: Tensor, other: Tensor) -> Tensor: ...
def logcumsumexp(input: Tensor, dim: _int, *, out: Tensor | None = ...) -> Tensor: ...
def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def logical_and_(input: Tensor, other: Tensor) -> Tensor: ...
def logical_not(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def logical_not_(input: Tensor) -> Tensor: ...
def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def logical_or_(input: Tensor, other: Tensor) -> Tensor: ...
def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def logical_xor_(input: Tensor, other: Tensor) -> Tensor: ...
def logit(input: Tensor, eps: Number | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def logit_(input: Tensor, eps: Number | None = ...) -> Tensor: ...
def logsumexp(
    input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = ..., *, out: Tensor | None = ...
) -> Tensor: ...

long: _dtype

def lt(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def lt_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def masked_fill(
    input: Tensor, mask: Tensor, value: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def masked_fill_(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor: ...
def masked_scatter(
    input: Tensor, mask: Tensor, source: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor: ...
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def max(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def max(
    input: Tensor, dim: _int, keepdim: _bool = ..., *, out: Sequence[Tensor] | None = ...
) -> _ValuesIndices: ...
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def maximum_(input: Tensor, other: Tensor) -> Tensor: ...
def mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    keepdim: _bool = ...,
    *,
    dtype: _dtype | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def median(
    input: Tensor, dim: _int, keepdim: _bool = ..., *, out: Sequence[Tensor] | None = ...
) -> _ValuesIndices: ...
@overload
def median(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def min(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def min(
    input: Tensor, dim: _int, keepdim: _bool = ..., *, out: Sequence[Tensor] | None = ...
) -> _ValuesIndices: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def minimum_(input: Tensor, other: Tensor) -> Tensor: ...
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def mode(
    input: Tensor, dim: _int = ..., keepdim: _bool = ..., *, out: Sequence[Tensor] | None = ...
) -> _ValuesIndices: ...
def moveaxis(
    input: Tensor,
    source: _int | Sequence[_int],
    destination: _int | Sequence[_int],
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def movedim(
    input: Tensor,
    source: _int | Sequence[_int],
    destination: _int | Sequence[_int],
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def msort(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def mul(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def mul_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def multinomial(
    input: Tensor,
    num_samples: _int,
    replacement: _bool = ...,
    *,
    generator: Generator | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def multiply(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def multiply_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def mvlgamma(input: Tensor, p: _int, *, out: Tensor | None = ...) -> Tensor: ...
def mvlgamma_(input: Tensor, p: _int) -> Tensor: ...

nan: _float

def nan_to_num(
    input: Tensor,
    nan: Number | None = ...,
    posinf: Number | None = ...,
    neginf: Number | None = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def nan_to_num_(
    input: Tensor,
    nan: Number | None = ...,
    posinf: Number | None = ...,
    neginf: Number | None = ...,
) -> Tensor: ...
def nanmean(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    keepdim: _bool = ...,
    *,
    dtype: _dtype | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def nanmedian(
    input: Tensor, dim: _int, keepdim: _bool = ..., *, out: Sequence[Tensor] | None = ...
) -> _ValuesIndices: ...
@overload
def nanmedian(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def nansum(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    keepdim: _bool = ...,
    *,
    dtype: _dtype | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def narrow(
    input: Tensor, dim: _int, start: _int, length: _int, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def narrow(
    input: Tensor, dim: _int, start: Tensor, length: _int, *, out: Tensor | None = ...
) -> Tensor: ...
def ne(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def ne_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def neg(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def neg_(input: Tensor) -> Tensor: ...
def negative(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def negative_(input: Tensor) -> Tensor: ...

newaxis: None

def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def nextafter_(input: Tensor, other: Tensor) -> Tensor: ...
def not_equal(input: Tensor, other: Tensor | Number, *, out: Tensor | None = ...) -> Tensor: ...
def not_equal_(input: Tensor, other: Tensor | Number) -> Tensor: ...
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def permute(input: Tensor, *dims: _int | Sequence[_int], out: Tensor | None = ...) -> Tensor: ...

pi: _float

def poisson(
    input: Tensor, generator: Generator | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def polygamma(n: _int, input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def polygamma(input: Tensor, n: _int, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def polygamma_(n: _int, input: Tensor) -> Tensor: ...
@overload
def polygamma_(input: Tensor, n: _int) -> Tensor: ...
def positive(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def pow(
    input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def pow_(input: Tensor | Number, exponent: Tensor | Number) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def prod(input: Tensor, *, dtype: _dtype | None = ..., out: Tensor | None = ...) -> Tensor: ...
@overload
def prod(
    input: Tensor,
    dim: _int,
    keepdim: _bool = ...,
    *,
    dtype: _dtype | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def put(
    input: Tensor,
    index: Tensor,
    source: Tensor,
    accumulate: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = ...) -> Tensor: ...
def rad2deg(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def rad2deg_(input: Tensor) -> Tensor: ...
def ravel(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def real(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def reciprocal(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def reciprocal_(input: Tensor) -> Tensor: ...
def relu(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def relu_(input: Tensor) -> Tensor: ...
def remainder(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def remainder_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
@overload
def repeat_interleave(
    input: Tensor,
    repeats: _int,
    dim: _int | None = ...,
    *,
    output_size: _int | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def repeat_interleave(
    input: Tensor,
    repeats: Tensor,
    dim: _int | None = ...,
    *,
    output_size: _int | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def repeat_interleave(
    repeats: Tensor, *, output_size: _int | None = ..., out: Tensor | None = ...
) -> Tensor: ...
def reshape(input: Tensor, *shape: _int | Sequence[_int], out: Tensor | None = ...) -> Tensor: ...
def resolve_conj(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def resolve_neg(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def roll(
    input: Tensor,
    shifts: _int | Sequence[_int],
    dims: _int | Sequence[_int] | None = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def rot90(
    input: Tensor, k: _int = ..., dims: _int | Sequence[_int] = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def round(input: Tensor, *, decimals: Number = ..., out: Tensor | None = ...) -> Tensor: ...
def round_(input: Tensor, *, decimals: Number = ...) -> Tensor: ...
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: ...
def rsqrt(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def rsqrt_(input: Tensor) -> Tensor: ...
def rsub(
    input: Tensor, other: Tensor | Number, *, alpha: Number = ..., out: Tensor | None = ...
) -> Tensor: ...
@overload
def scatter(
    input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def scatter(
    input: Tensor, dim: _int, index: Tensor, value: Number, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def scatter(
    input: Tensor, dim: _int, index: Tensor, src: Tensor, *, reduce: _str, out: Tensor | None = ...
) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    dim: _int,
    index: Tensor,
    value: Number,
    *,
    reduce: _str,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, src: Tensor) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, value: Number) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, reduce: _str) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, value: Number, *, reduce: _str) -> Tensor: ...
def scatter_add(
    input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = ...
) -> Tensor: ...
def scatter_add_(input: Tensor, dim: _int, index: Tensor, src: Tensor) -> Tensor: ...
def scatter_reduce(
    input: Tensor,
    dim: _int,
    index: Tensor,
    src: Tensor,
    reduce: _str,
    *,
    include_self: _bool = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def scatter_reduce_(
    input: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = ...
) -> Tensor: ...
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: _bool = ...,
    right: _bool = ...,
    side: _str | None = ...,
    sorter: Tensor | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def select(input: Tensor, dim: _int, index: _int, *, out: Tensor | None = ...) -> Tensor: ...
def selu(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def selu_(input: Tensor) -> Tensor: ...
def sgn(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def sgn_(input: Tensor) -> Tensor: ...

short: _dtype

def sigmoid(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def sigmoid_(input: Tensor) -> Tensor: ...
def sign(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def sign_(input: Tensor) -> Tensor: ...
def signbit(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def sin(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def sin_(input: Tensor) -> Tensor: ...
def sinc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def sinc_(input: Tensor) -> Tensor: ...
def sinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def sinh_(input: Tensor) -> Tensor: ...
def softmax(
    input: Tensor, dim: _int, dtype: _dtype | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def sort(
    input: Tensor,
    dim: _int = ...,
    descending: _bool = ...,
    stable: _bool | None = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> _ValuesIndices: ...
@overload
def split(
    tensor: Tensor, split_size_or_sections: _int, dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
@overload
def split(
    tensor: Tensor,
    split_size_or_sections: _int | Sequence[_int],
    dim: _int = ...,
    *,
    out: Tensor | None = ...,
) -> builtins.tuple[Tensor, ...]: ...
@overload
def split(
    input: Tensor, split_size: _int, dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
@overload
def split(
    input: Tensor, split_size: _int | Sequence[_int], dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
def split_with_sizes(
    input: Tensor, split_sizes: _int | Sequence[_int], dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
def sqrt(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def sqrt_(input: Tensor) -> Tensor: ...
def square(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def square_(input: Tensor) -> Tensor: ...
def squeeze(input: Tensor, *dim: _int | Sequence[_int], out: Tensor | None = ...) -> Tensor: ...
def stack(tensors: Sequence[Tensor], dim: _int = ..., *, out: Tensor | None = ...) -> Tensor: ...
@overload
def std(input: Tensor, unbiased: _bool, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def std(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = ...,
    keepdim: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def std(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    *,
    correction: Number | None = ...,
    keepdim: _bool = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def std_mean(
    input: Tensor, unbiased: _bool, *, out: Sequence[Tensor] | None = ...
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def std_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = ...,
    keepdim: _bool = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def std_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    *,
    correction: Number | None = ...,
    keepdim: _bool = ...,
    out: Sequence[Tensor] | None = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def sub(
    input: Tensor | Number, other: Tensor | Number, *, alpha: Number = ..., out: Tensor | None = ...
) -> Tensor: ...
@overload
def sub(
    input: Tensor, alpha: Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def sub_(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = ...) -> Tensor: ...
@overload
def sub_(input: Tensor, alpha: Number, other: Tensor | Number) -> Tensor: ...
def subtract(
    input: Tensor | Number, other: Tensor | Number, *, alpha: Number = ..., out: Tensor | None = ...
) -> Tensor: ...
def subtract_(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = ...) -> Tensor: ...
def sum(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    keepdim: _bool = ...,
    *,
    dtype: _dtype | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def swapaxes(input: Tensor, axis0: _int, axis1: _int, *, out: Tensor | None = ...) -> Tensor: ...
def swapdims(input: Tensor, dim0: _int, dim1: _int, *, out: Tensor | None = ...) -> Tensor: ...
def t(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def take(input: Tensor, index: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def take_along_dim(
    input: Tensor, indices: Tensor, dim: _int | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def tan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def tan_(input: Tensor) -> Tensor: ...
def tanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def tanh_(input: Tensor) -> Tensor: ...
@overload
def tensor_split(
    input: Tensor, indices_or_sections: _int, dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor,
    indices_or_sections: _int | Sequence[_int],
    dim: _int = ...,
    *,
    out: Tensor | None = ...,
) -> builtins.tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor, sections: _int, dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor, indices: _int | Sequence[_int], dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor, tensor_indices_or_sections: Tensor, dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
def threshold(
    input: Tensor, threshold: Number, value: Number, *, out: Tensor | None = ...
) -> Tensor: ...
def threshold_(input: Tensor, threshold: Number, value: Number) -> Tensor: ...
def tile(input: Tensor, *dims: _int | Sequence[_int], out: Tensor | None = ...) -> Tensor: ...
def topk(
    input: Tensor,
    k: _int,
    dim: _int = ...,
    largest: _bool = ...,
    sorted: _bool = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> _ValuesIndices: ...
def transpose(input: Tensor, dim0: _int, dim1: _int, *, out: Tensor | None = ...) -> Tensor: ...
def tril(input: Tensor, diagonal: _int = ..., *, out: Tensor | None = ...) -> Tensor: ...
def tril_(input: Tensor, diagonal: _int = ...) -> Tensor: ...
def triu(input: Tensor, diagonal: _int = ..., *, out: Tensor | None = ...) -> Tensor: ...
def triu_(input: Tensor, diagonal: _int = ...) -> Tensor: ...
def true_divide(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def true_divide_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def trunc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def trunc_(input: Tensor) -> Tensor: ...

uint16: _dtype
uint32: _dtype
uint64: _dtype
uint8: _dtype

def unbind(
    input: Tensor, dim: _int = ..., *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
def unflatten(
    input: Tensor, dim: _int, sizes: _int | Sequence[_int], *, out: Tensor | None = ...
) -> Tensor: ...
def unsqueeze(input: Tensor, dim: _int, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def var(input: Tensor, unbiased: _bool, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def var(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = ...,
    keepdim: _bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def var(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    *,
    correction: Number | None = ...,
    keepdim: _bool = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def var_mean(
    input: Tensor, unbiased: _bool, *, out: Sequence[Tensor] | None = ...
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def var_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = ...,
    keepdim: _bool = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def var_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None = ...,
    *,
    correction: Number | None = ...,
    keepdim: _bool = ...,
    out: Sequence[Tensor] | None = ...,
) -> builtins.tuple[Tensor, Tensor]: ...
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def view_as_complex(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def view_as_real(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def vsplit(
    input: Tensor, indices_or_sections: _int, *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
@overload
def vsplit(
    input: Tensor, indices_or_sections: _int | Sequence[_int], *, out: Tensor | None = ...
) -> builtins.tuple[Tensor, ...]: ...
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: ...
@overload
def where(
    condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def where(
    input: Tensor | Number, condition: Tensor, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
@overload
def where(condition: Tensor, *, out: Tensor | None = ...) -> builtins.tuple[Tensor, ...]: ...
def xlogy(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = ...
) -> Tensor: ...
def xlogy_(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...

__version__: _str
__array_api_version__: _str
