"""What tools/coverage.py cannot see: reasons for absence, known differences of meaning."""

from __future__ import annotations

import re

# The modules of the page, below torch.
MODULES = (
    "",
    "Tensor",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.parameter",
    "nn.attention",
    "nn.attention.bias",
    "nn.attention.flex_attention",
    "nn.utils",
    "nn.utils.rnn",
    "nn.utils.parametrize",
    "nn.utils.parametrizations",
    "nn.utils.prune",
    "nn.utils.stateless",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "linalg",
    "fft",
    "special",
    "signal.windows",
    "func",
    "autograd",
    "autograd.functional",
    "autograd.forward_ad",
    "autograd.graph",
    "distributions",
    "distributions.constraints",
    "distributions.transforms",
    "distributions.kl",
    "masked",
    "random",
    "amp",
    "testing",
    "overrides",
    "profiler",
    "autograd.profiler",
    "utils.flop_counter",
    "utils.data",
    "utils.checkpoint",
    "utils.dlpack",
    "utils.hooks",
)

# Names of torch and of Tensor that only raise; torch.linalg has them.
REMOVED = {"eig", "lstsq", "matrix_rank", "solve"}
# Names that dir() shows but nobody calls public: what modules import, notes for docs.
NOT_PUBLIC = {
    "Any",
    "Callable",
    "DType",
    "DeviceLikeType",
    "IO",
    "NO_INDENT",
    "OptimizerPostHook",
    "OptimizerPreHook",
    "Optional",
    "TYPE_CHECKING",
    "TypeVar",
    "USE_GLOBAL_DEPS",
    "USE_RTLD_GLOBAL_WITH_LIBTORCH",
    "assert_int_or_pair",
    "boolean_dispatch",
    "classproperty",
    "common_notes",
    "factory_kwargs",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "reproducibility_notes",
    "sparse_support_notes",
    "tf32_notes",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "PRIVATE_OPS",
    "builtins",
    "check_worker_number_rationality",
    "cummulative_sizes",
    "profile_hook_step",
    "symeig",  # removed from PyTorch: it raises there
    "index",  # Tensor's: needs named dimensions
    "name",
    "resize",
    "resize_as",
    "volatile",
    "reinforce",
}

_JIT = "TorchScript and the compiler's internals"
_SPARSE = "sparse and nested tensors"
_QUANTIZED = "quantization"
_DEVICES = "other devices and their kernels"
_KERNELS = "kernels behind public functions"
_NARROW = "dtypes narrower than eight bits"
_SYMBOLIC = "symbolic sizes of traced programs"
_COPIES = "copying forms of views, made for the compiler"
_PIPES = "data pipes, which PyTorch gave up"
_STORAGE = "storages of one type and types named by strings, deprecated"
_INTERNAL = "PyTorch's own internals"
_MASKED = "masked tensors, a prototype"

_PATTERNS: tuple[tuple[str, str], ...] = (
    (
        r"(.*\.)?(sparse_\w+|\w*_sparse\w*|s?addmm|hspmm|hsmm|dsmm|smm|spmm|sspaddmm|saddmm|"
        r"c?c?(ol|row)_indices\w*|crow_indices\w*|row_indices\w*|indices(_copy)?|values_copy|"
        r"resize_as_sparse_|coalesce|is_coalesced|dense_dim|sparse_dim|is_sparse_csr|to_sparse\w*|"
        r"sparse_resize_\w*|to_padded_tensor|jagged|values|hash_tensor|"
        r"to_mkldnn|is_mkldnn|to_dense)",
        _SPARSE,
    ),
    (
        r"(.*\.)?(q_\w+|int_repr|dequantize|qscheme|quantize\w*|fbgemm\w*|fake_quantize\w*|"
        r"quantized\w*|per_(channel|tensor)\w*|q?u?int\d+(x\d)?|quint\w+|qint\w+|empty_quantized|"
        r"fused_moving_avg_obs_fake_quant|choose_qparams_optimized|Q\w+Storage)",
        _QUANTIZED,
    ),
    (r"(.*\.)?(bits\w+|float4\w+|ComplexHalf\w*|bit)", _NARROW),
    (
        r"(.*\.)?(cudnn\w*|miopen\w*|mkldnn\w*|is_vulkan\w*|ipu|is_ipu|is_maia|is_mtia|mtia|"
        r"is_vulkan|is_xla|is_xpu|xpu|Stream\w*|Event|record_stream|DeviceObjType|AcceleratorError|"
        r"get_device_module|.*(_xla_|_ipu_).*|.*_(xla|ipu)_\w+|is_distributed|"
        r"profiler_allow_cudagraph\w*|scaled_mm|scaled_grouped_mm|grouped_mm|ScalingType|"
        r"SwizzleType|set_override_stale_capture_stream|"
        r"set_warn_on_accumulate_grad_stream_mismatch|"
        r"\w*flash_attention_impl\w*|WARN_FOR_UNFUSED_KERNELS|privateuse1)",
        _DEVICES,
    ),
    (r"masked\.(\w*_?masked_tensor|MaskedTensor)", _MASKED),
    (r"(.*\.)?\w+_copy", _COPIES),
    (r"(.*\.)?(Sym\w+|sym_\w+)", _SYMBOLIC),
    (
        r"utils\.data\.(DFIterDataPipe|IterDataPipe|MapDataPipe|DataChunk|argument_validation|"
        r"functional_datapipe|\w*deterministic\w*|\w*determinism\w*|runtime_validation\w*)",
        _PIPES,
    ),
    (
        r"(.*\.)?(\w+Storage|\w+Tensor|StorageBase|TypedStorage|UntypedStorage|"
        r"Storage|storage|storage_type|new)",
        _STORAGE,
    ),
    (
        r"(.*\.)?(native_\w+|batch_norm_\w+|\w+_backward\w*|slice_inverse|affine_grid_generator|"
        r"grid_sampler\w*|embedding_renorm_|norm_except_dim|init_num_threads|hash_tensor|"
        r"max_pool1d_with_indices|is_set_to|const_data_ptr|map2_|"
        r"prepare_multiprocessing_environment|"
        r"thread_safe_generator|dim_order|module_load|sum_to_size_|feature_dropout_|grad_dtype|"
        r"(lstm|gru|rnn_\w+)(_cell)?|conv_tbc)",
        _KERNELS,
    ),
    (
        r"(AVG|SUM|Aggregation\w*|Await\w*|Alias\w*|Any\w*|Argument\w*|Block|Benchmark\w*|\w+Type|"
        r"Code|CallStack|Capsule|Class\w+|CompilationUnit|Complete\w+|ConcreteModule\w+|Deep\w+|"
        r"Deserialization\w+|Serialization\w+|Dispatch\w+|ErrorReport|Exclude\w+|Execution\w+|"
        r"FatalError|FileCheck|Function\w+|Future|Gradient|Graph\w*|IODescriptor|JITException|"
        r"Lite\w+|Lock\w+|Logger\w*|Module(Dict|List)|BufferDict|Node|Noop\w+|"
        r"Operator\w+|Parameter\w+|"
        r"PyTorch\w+|Script\w+|StaticModule|ThroughputBenchmark|Tracing\w+|Use|Value|Tag|Type|"
        r"fork|wait|import_ir\w*|merge_type\w*|parse_\w+|unify_type_list|compiled_with_cxx11_abi|"
        r"has_(lapack|mkl|openmp|spectral)|while_loop|cond|get_file_path|DisableTorchFunction\w*|"
        r"from_file|legacy_contiguous_format)",
        _JIT,
    ),
    (
        r"(autograd\.(NestedIOFunction|enforce_grad_layout_policy|variable)|"
        r"utils\.checkpoint\.(DefaultDeviceType|GraphExecGroup|SAC_IGNORED_OPS|\w+device_states)|"
        r"utils\.dlpack\.DLDeviceType|utils\.hooks\.\w+|testing\.FileCheck|"
        r"autograd\.graph\.region_activation_memory_budget|overrides\.\w*|"
        r"profiler\.ExecutionTraceObserver|autograd\.profiler\.\w*)",
        _INTERNAL,
    ),
)


def reason(path: str) -> str:
    """Why a name is out of scope; '' for one that is simply not there yet."""
    for pattern, why in _PATTERNS:
        if re.fullmatch(pattern, path):
            return why
    return ""


# The parameters are the same though an inspection says otherwise.
SAME_PARAMETERS = {
    "autograd.profiler.FunctionEvent",  # made by the profiler alone
    "as_tensor",
    "cummax",
    "cummin",
    "dsplit",
    "eq",
    "hsplit",
    "isin",
    "ldexp",
    "nn.functional.one_hot",
    "resize_as_",
    "ne",
    "nn.functional.elu_",
    "result_type",
    "sort",
    "tensor",
    "vsplit",
}

# None stands for these values.
SAME_DEFAULTS = {"correction", "dtype", "device_type", "dx", "spacing"}

# Members that serve the classes themselves, or other devices.
INNER_MEMBERS = {
    "T_destination",
    "abbr",
    "call_super_init",
    "check_forward_args",
    "check_hidden_size",
    "check_input",
    "clone",
    "dump_patches",
    "get_expected_cell_size",
    "get_expected_hidden_size",
    "get_offset",
    "graphsafe_get_state",
    "graphsafe_set_state",
    "ipu",
    "mtia",
    "ownership_token",
    "permute_hidden",
    "recursive_undo",
    "set_offset",
    "xpu",
}

# Parameters that only other devices' kernels take.
OTHER_PARAMETERS = {
    "dq_kv_order",
    "dq_kv_order_spt",
    "dq_write_order",
    "dq_write_order_full",
    "compute_dq_write_order",
    "out_dtype",
}

# Members are on instances, or on the context that methods are given.
SAME_MEMBERS = {
    "autograd.Function",
    "finfo",
    "iinfo",
    "nn.LinearCrossEntropyOptions",
    "nn.DataParallel",
    "nn.attention.SDPBackend",
    "nn.parameter.UninitializedTensorMixin",
    "profiler.DeviceType",
    "profiler.ProfilerAction",
    "profiler.ProfilerActivity",
    "utils.checkpoint.CheckpointFunction",
}

# Known differences of meaning.
DIFFERS = {
    "compile": "runs the Python as it is, operations wait; own backends under clew run alone",
    "use_deterministic_algorithms": "accepted; operations are deterministic anyway",
    "set_flush_denormal": "denormal numbers are always kept",
    "profiler.profile": "operations are called `mul`, not `aten::mul`; also has `by_line`, "
    "`by_module`, `peak`, `memory_timeline`",
    "Tensor.cuda": "raises: there is no CUDA device",
    "Tensor.pin_memory": "the tensor itself: nothing to pin for",
    "nn.DataParallel": "one device: calls the module",
    "nn.attention.sdpa_kernel": "one kernel: the choice changes nothing",
}
