"""The functions and methods of clew/_ops, and those of clew.nn that are also at the top level."""

from __future__ import annotations

FUNCTIONS = {
    "clew._C": (
        "autocast_decrement_nesting autocast_increment_nesting bits16 bits1x8 bits2x4 bits4x2 "
        "bits8 clear_autocast_cache complex32 float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz "
        "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int3 int4 int5 int6 int7 qint32 "
        "qint8 quint2x4 quint4x2 quint8 uint1 uint2 uint3 uint4 uint5 uint6 uint7"
    ),
    "clew._ops.calculus": "cumulative_trapezoid gradient trapezoid trapz",
    "clew._ops.copies": (
        "alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy "
        "slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy "
        "unbind_copy unfold_copy unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy"
    ),
    "clew._ops.foreach": (
        "_amp_foreach_non_finite_check_and_unscale_ _foreach_abs _foreach_abs_ _foreach_acos "
        "_foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv _foreach_addcdiv_ "
        "_foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan "
        "_foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_ "
        "_foreach_clamp_min _foreach_clamp_min_ _foreach_clone _foreach_copy_ _foreach_cos "
        "_foreach_cos_ _foreach_cosh _foreach_cosh_ _foreach_div _foreach_div_ _foreach_erf "
        "_foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1 "
        "_foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp "
        "_foreach_lerp_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log10 "
        "_foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_log_ "
        "_foreach_max _foreach_maximum _foreach_maximum_ _foreach_minimum _foreach_minimum_ "
        "_foreach_mm _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_ _foreach_norm "
        "_foreach_pow _foreach_pow_ _foreach_powsum _foreach_reciprocal _foreach_reciprocal_ "
        "_foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sigmoid "
        "_foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh "
        "_foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan "
        "_foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc _foreach_trunc_ _foreach_zero_"
    ),
    "clew._ops.histogram": "histc histogram histogramdd",
    "clew._ops.legacy": (
        "BFloat16Tensor BoolTensor ByteTensor CharTensor ComplexDoubleTensor ComplexFloatTensor "
        "DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor UInt16Tensor "
        "UInt32Tensor UInt64Tensor set_default_tensor_type tensortype"
    ),
    "clew._ops.memory": "from_file",
    "clew._ops.native": (
        "_batch_norm_with_update _chunk_cat _native_batch_norm_legit _safe_softmax _segment_reduce "
        "_softmax_backward_data _unsafe_masked_index _unsafe_masked_index_put_accumulate "
        "max_pool2d_with_indices_backward native_batch_norm native_dropout "
        "native_dropout_backward native_group_norm native_layer_norm native_norm norm_except_dim "
        "segment_reduce"
    ),
    "clew._ops.random": "binomial",
    "clew._ops.scattering": (
        "as_strided_scatter diagonal_scatter index_put index_put_ index_reduce nonzero "
        "select_scatter slice_scatter unravel_index"
    ),
    "clew._ops.statistics": "corrcoef cov isin nanquantile quantile renorm",
    "clew._ops.tensors": (
        "alpha_dropout_ as_strided_ detach_ dropout_ empty_permuted feature_alpha_dropout_ "
        "feature_dropout_ fill_ frexp frobenius_norm get_device hash_tensor is_conj "
        "is_inference is_neg is_same_size is_signed nonzero_static resize_as_ slice_inverse zero_"
    ),
    "clew.amp": "GradScaler autocast",
    "clew.autograd.anomaly_mode": (
        "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled"
    ),
    "clew.amp._state": (
        "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype "
        "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled "
        "set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype"
    ),
    "clew._tensor.array_namespace": "__array_namespace__",
    # The Array API standard's names that mean nothing else in PyTorch.
    "clew.array_api": (
        "__array_namespace_info__ astype bitwise_invert broadcast_arrays cumulative_prod "
        "cumulative_sum expand_dims isdtype matrix_transpose permute_dims take_along_axis "
        "unique_all unique_counts unique_inverse unique_values unstack vecdot"
    ),
    "clew._base.dtypes": "jagged sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr",
    "clew.sparse": (
        "dsmm hspmm smm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor "
        "sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sspaddmm"
    ),
    "clew.storage": (
        "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage "
        "ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage "
        "ShortStorage TypedStorage UntypedStorage"
    ),
    "clew.nn._toplevel": (
        "_upsample_bilinear2d_aa adaptive_max_pool1d affine_grid_generator batch_norm "
        "binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss embedding_bag "
        "grid_sampler grid_sampler_2d grid_sampler_3d group_norm hinge_embedding_loss "
        "instance_norm kl_div layer_norm margin_ranking_loss max_pool1d_with_indices "
        "poisson_nll_loss rrelu rrelu_ triplet_margin_loss"
    ),
    "clew.nn.functional": (
        "adaptive_avg_pool1d avg_pool1d bilinear channel_shuffle conv_tbc cosine_similarity "
        "embedding_renorm_ max_pool1d max_pool2d max_pool3d native_channel_shuffle "
        "pairwise_distance pdist pixel_shuffle pixel_unshuffle rms_norm"
    ),
}
METHODS = {
    "clew._tensor.array_namespace": "__array_namespace__",
    "clew._ops.functions": "is_nonzero",
    "clew._ops.histogram": "histc histogram",
    "clew._ops.methods": (
        "const_data_ptr dim_order fill_diagonal_ is_set_to map2_ module_load new set_ storage_type "
        "sum_to_size"
    ),
    "clew._ops.scattering": (
        "as_strided_scatter diagonal_scatter index_put index_put_ index_reduce index_reduce_ "
        "nonzero select_scatter slice_scatter"
    ),
    "clew._ops.statistics": "corrcoef cov nanquantile quantile renorm renorm_",
    "clew._ops.tensors": "frexp hash_tensor is_neg nonzero_static resize_as_ slice_inverse",
    "clew.sparse._of_dense": (
        "_indices _nnz ccol_indices coalesce col_indices crow_indices dense_dim indices "
        "is_coalesced row_indices sparse_dim sparse_mask to_dense to_sparse to_sparse_bsc "
        "to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr values"
    ),
    "clew.sparse._products": "dsmm hspmm smm sspaddmm",
    "clew.sparse._sizes": "resize_as_sparse_ sparse_resize_ sparse_resize_and_clear_",
    "clew.nested._construct": "to_padded_tensor",
    "clew.storage": "_typed_storage storage",
}


def by_name(table: dict[str, str]) -> dict[str, str]:
    """The module of each name."""
    return {name: module for module, names in table.items() for name in names.split()}
