"""Modules of PyTorch that programs import names from, and that clew does not have.

Their names can be imported, subclassed, asked `isinstance` for and annotated with. Calling one
raises, and says why: none pretends to work.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NoReturn

_SHARDED = "this way to spread models over processes is not part of clew; see docs/distributed.md"
_RPC = (
    "functions of other processes are not called; tensors and objects are sent with "
    "distributed.send, recv, scatter_object_list and all_gather_object"
)
_STARTED = (
    "ranks are started by `clew launch` (again after a failure with --restarts) or mpiexec, and "
    "from a program by multiprocessing.spawn"
)
_PIPELINES = (
    "a model is cut by hand: use pipelining.PipelineStage with ScheduleGPipe or Schedule1F1B"
)
_CHECKPOINTS = (
    "checkpoints have a layout of their own, which is not planned by programs; use "
    "distributed.checkpoint.save, load and async_save"
)
_FULLY = "use distributed.fsdp.fully_shard; see docs/distributed.md"
_OPTIMIZERS = "use optimizers of clew.optim on what fully_shard made, or ZeroRedundancyOptimizer"
_HOOKS = (
    "of communication hooks there are those of default_hooks, powerSGD_hook and "
    "post_localSGD_hook; any function of (state, bucket) is one"
)
_TENSORS = (
    "tensors over processes are those of distributed.tensor and its parallel.parallelize_module; "
    "see docs/distributed.md"
)
_COMPILER = "there is no such compiler here; programs run as they are"
_EXPORT = "programs are not written in this form"
_QUANTIZED = "this form of quantization is not part of clew; see ao.quantization.quantize_dynamic"
_RULES = "rules of other exporters are not called; see docs/export.md"
_JAGGED = "tensors of rows of different lengths are of another class; see clew.nested"
_GPU = "this needs a GPU; clew runs on the CPU"

# Module: why its names cannot be used, and the names.
MODULES: dict[str, tuple[str, str]] = {
    "distributed._composable": (_FULLY, "checkpoint replicate"),
    "distributed._composable.replicate": (_FULLY, "replicate"),
    "distributed._shard": (_TENSORS, "shard_parameter"),
    "distributed._shard.sharded_tensor": (_TENSORS, "Shard ShardedTensor"),
    "distributed._state_dict_utils": (_SHARDED, "_offload_state_dict_to_cpu"),
    "distributed._tools": (_SHARDED, ""),
    "distributed.algorithms._checkpoint": (_SHARDED, ""),
    "distributed.algorithms.model_averaging": (_SHARDED, ""),
    "distributed.checkpoint._consolidate_hf_safetensors": (
        _CHECKPOINTS,
        "consolidate_safetensors_files consolidate_safetensors_files_on_every_rank",
    ),
    "distributed.checkpoint.hf_storage": (
        _CHECKPOINTS,
        "HuggingFaceStorageReader HuggingFaceStorageWriter",
    ),
    "distributed.algorithms.ddp_comm_hooks.ddp_zero_hook": (
        _HOOKS,
        "hook_with_zero_step hook_with_zero_step_interleaved",
    ),
    "distributed.algorithms.ddp_comm_hooks.mixed_precision_hooks": (_HOOKS, ""),
    "distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks": (_HOOKS, ""),
    "distributed.algorithms.ddp_comm_hooks.quantization_hooks": (
        _HOOKS,
        "quantization_perchannel_hook quantization_pertensor_hook",
    ),
    "distributed.argparse_util": (_STARTED, "check_env env"),
    "distributed.autograd": (_RPC, "backward context get_gradients"),
    "distributed.checkpoint.metadata": (_CHECKPOINTS, "Metadata TensorStorageMetadata"),
    "distributed.checkpoint.optimizer": (_CHECKPOINTS, "load_sharded_optimizer_state_dict"),
    "distributed.checkpoint.planner": (_CHECKPOINTS, "LoadPlanner SavePlanner"),
    "distributed.checkpoint.quantized_hf_storage": (
        _CHECKPOINTS,
        "QuantizedHuggingFaceStorageReader",
    ),
    "distributed.checkpoint.planner_helpers": (_CHECKPOINTS, "create_read_items_for_chunk_list"),
    "distributed.checkpoint.staging": (
        _CHECKPOINTS,
        "AsyncStager BlockingAsyncStager DefaultStager StagingOptions",
    ),
    "distributed.checkpoint.storage": (_CHECKPOINTS, "StorageReader StorageWriter WriteResult"),
    "distributed.checkpoint.utils": (_CHECKPOINTS, "find_state_dict_object find_tensor_shard"),
    "distributed.debug": (
        "ranks are compared by `clew launch --check`",
        "start_debug_server stop_debug_server",
    ),
    "distributed.elastic": (_STARTED, ""),
    "distributed.elastic.agent": (_STARTED, ""),
    "distributed.elastic.agent.server": (_STARTED, ""),
    "distributed.elastic.agent.server.api": (_STARTED, "WorkerState"),
    "distributed.elastic.multiprocessing": (_STARTED, "LogsSpecs Std start_processes"),
    "distributed.elastic.multiprocessing.api": (_STARTED, "DefaultLogsSpecs"),
    "distributed.fsdp._common_utils": (_FULLY, "_FSDPState _named_parameters_with_duplicates"),
    "distributed.fsdp._runtime_utils": (_FULLY, ""),
    "distributed.launcher": (_STARTED, ""),
    "distributed.launcher.api": (_STARTED, "LaunchConfig elastic_launch"),
    "distributed.nn.api": (_RPC, ""),
    "distributed.nn.api.remote_module": (_RPC, "RemoteModule"),
    "distributed.nn.jit": (_RPC, ""),
    "distributed.optim.named_optimizer": (_OPTIMIZERS, ""),
    "distributed.optim.optimizer": (_RPC, "DistributedOptimizer"),
    "distributed.optim.utils": (_OPTIMIZERS, "as_functional_optim register_functional_optim"),
    "distributed.remote_device": (_RPC, ""),
    "distributed.rpc": (
        _RPC,
        "RRef get_worker_info init_rpc remote rpc_async rpc_sync shutdown "
        "TensorPipeRpcBackendOptions",
    ),
    "distributed.rpc.backend_registry": (_RPC, "BackendType"),
    "distributed.rpc.constants": (_RPC, ""),
    "distributed.rpc.internal": (_RPC, "PythonUDF RPCExecMode RemoteException"),
    "distributed.rpc.options": (_RPC, "TensorPipeRpcBackendOptions"),
    "distributed.rpc.functions": (_RPC, "async_execution"),
    "distributed.tensor._utils": (_TENSORS, "compute_local_shape_and_global_offset"),
    "distributed.tensor.parallel.ddp": (_TENSORS, ""),
    "distributed.tensor.parallel.fsdp": (_TENSORS, "DTensorExtensions"),
    "distributed.tensor.parallel.input_reshard": (_TENSORS, "input_reshard"),
    "distributed.tensor.experimental._attention": (
        _TENSORS,
        "_templated_ring_attention context_parallel set_rotate_method",
    ),
    "distributed.utils": (
        _SHARDED,
        "_sync_module_states _to_kwargs _verify_param_shape_across_processes "
        "_replace_by_prefix _apply_to_tensors",
    ),
    "_dynamo.backends.common": (_COMPILER, "aot_autograd"),
    "_dynamo.testing": (_COMPILER, "CompileCounter CompileCounterWithBackend"),
    "_dynamo.symbolic_convert": (_COMPILER, ""),
    "_dynamo.variables": (_COMPILER, ""),
    "_inductor.codecache": (_COMPILER, "PyCodeCache extract_tensor_metadata_for_cache_key"),
    "_inductor.cpu_vec_isa": (_COMPILER, "pick_vec_isa"),
    "_inductor.package": (_COMPILER, "load_package package_aoti"),
    "_inductor.lowering": (_COMPILER, ""),
    "_inductor.runtime": (_COMPILER, ""),
    "_inductor.runtime.cache_dir_utils": (_COMPILER, "cache_dir"),
    "_functorch._aot_autograd": (_COMPILER, ""),
    "_functorch._aot_autograd.functional_utils": (_COMPILER, "from_fun to_fun"),
    "_functorch.aot_autograd": (
        _COMPILER,
        "aot_export_joint_simple aot_export_module aot_function aot_module",
    ),
    "_functorch.compilers": (_COMPILER, "aot_module nop ts_compile"),
    "_functorch.partitioners": (_COMPILER, "min_cut_rematerialization_partition"),
    "_decomp": (_COMPILER, "core_aten_decompositions get_decompositions register_decomposition"),
    "_export": (_EXPORT, "aot_compile capture_pre_autograd_graph"),
    "export": (
        _EXPORT,
        "Constraint ExportedProgram ExportGraphSignature "
        "ShapesCollection export export_for_training "
        "load register_dataclass save unflatten",
    ),
    "fx.passes.graph_drawer": (_COMPILER, "FxGraphDrawer"),
    "fx.passes.split_module": (_COMPILER, "split_module"),
    "fx.passes.infra": (_COMPILER, ""),
    "fx.passes.infra.partitioner": (_COMPILER, "CapabilityBasedPartitioner"),
    "fx.passes.operator_support": (_COMPILER, "OperatorSupport OperatorSupportBase"),
    "fx.traceback": (_COMPILER, "get_current_meta preserve_node_meta set_current_meta"),
    "export._trace": (_EXPORT, ""),
    "nested._internal": (_JAGGED, ""),
    "nested._internal.nested_tensor": (_JAGGED, "NestedTensor"),
    "onnx._internal": (_EXPORT, ""),
    "onnx._internal.exporter": (_EXPORT, "ONNXProgram"),
    "onnx.utils": (_EXPORT, "export select_model_mode_for_export"),
    "onnx.operators": (_EXPORT, "shape_as_tensor"),
    "utils.bundled_inputs": (_EXPORT, "augment_model_with_bundled_inputs"),
    "monitor": ("events are not collected", "Stat TensorboardEventHandler log_event"),
    "numa": (_STARTED, ""),
    "numa.binding": (_STARTED, "AffinityMode NumaOptions"),
    "package": (
        "packages are PyTorch's own files; store a module's state_dict() with save(), or its "
        "program with export.save()",
        "EmptyMatchError PackageExporter PackageImporter PackagingError is_from_package",
    ),
    "ao.quantization.fx": (_QUANTIZED, ""),
    "ao.quantization.quantize_fx": (_QUANTIZED, "convert_fx fuse_fx prepare_fx prepare_qat_fx"),
    "ao.quantization.quantize_pt2e": (_QUANTIZED, "convert_pt2e prepare_pt2e prepare_qat_pt2e"),
    "ao.nn.intrinsic": (_QUANTIZED, "ConvBn2d ConvBnReLU2d ConvReLU2d LinearReLU"),
    "autograd.profiler_legacy": ("autograd.profiler.profile is the profiler", "profile"),
    "ao.nn.qat": (_QUANTIZED, "Conv1d Conv2d Conv3d Linear"),
    "ao.quantization.fake_quantize": (
        _QUANTIZED,
        "FakeQuantize FakeQuantizeBase default_fake_quant disable_fake_quant enable_fake_quant",
    ),
    "ao.quantization.observer": (
        _QUANTIZED,
        "HistogramObserver MinMaxObserver MovingAverageMinMaxObserver "
        "MovingAveragePerChannelMinMaxObserver ObserverBase PerChannelMinMaxObserver "
        "PlaceholderObserver default_observer default_per_channel_weight_observer "
        "default_weight_observer",
    ),
    "ao.quantization.qconfig": (_QUANTIZED, "QConfigAny float_qparams_weight_only_qconfig"),
    "ao.quantization.qconfig_mapping": (_QUANTIZED, "QConfigMapping"),
    "nn.intrinsic": (_QUANTIZED, "ConvBn1d ConvBn2d ConvBnReLU2d ConvReLU2d LinearReLU"),
    "nn.qat": (_QUANTIZED, "Conv2d Linear"),
    "ao.nn.quantized.reference": (_QUANTIZED, ""),
    "ao.ns": (_QUANTIZED, ""),
    "ao.pruning": (_QUANTIZED, "BaseSparsifier WeightNormSparsifier"),
    "utils.cpp_extension": (
        "extensions are compiled for PyTorch's headers, which clew does not have",
        "BuildExtension CUDAExtension CppExtension include_paths library_paths load load_inline",
    ),
    "cuda.profiler": (_GPU, "init profile start stop"),
    "cuda.comm": (_GPU, "broadcast broadcast_coalesced gather reduce_add scatter"),
    "cuda.nccl": (_GPU, "all_gather all_reduce is_available version"),
    "cuda.graphs": (_GPU, "CUDAGraph graph graph_pool_handle make_graphed_callables"),
    "cuda.streams": (_GPU, "Event ExternalStream Stream"),
    "cuda.tunable": (_GPU, "enable is_enabled"),
    "cuda._memory_viz": (_GPU, "profile_plot trace_plot"),
}


class _Absent(type):
    """Classes of names that are not there: calling one says why."""

    _why: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{cls.__module__}.{cls.__qualname__}: {cls._why}")


def absent(module: str, name: str, why: str) -> Any:
    """A class that stands for a name that is not there."""
    home = f"torch.{module}".rstrip(".")
    return _Absent(
        name, (), {"__module__": home, "_why": why, "__doc__": f"Not part of clew: {why}."}
    )


# Names that modules of clew's own lack. Left out is what libraries import in a try and have
# something in place of: to them a name that cannot be used is worse than none.
_LACKING = {
    "_inductor": (_COMPILER, "aoti_compile_and_package aoti_load_package"),
    "compiler": (_COMPILER, "load_compiled_function save_cache_artifacts load_cache_artifacts"),
    "distributed": (
        "groups are made by new_group, over MPI; ranks that go away end the others",
        "ProcessGroupGloo ProcessGroupMPI ProcessGroupNCCL register_rendezvous_handler "
        "shrink_group",
    ),
    "distributed._tensor.placement_types": (_TENSORS, "DTensorSpec TensorMeta"),
    "distributed.tensor.debug": (_TENSORS, "visualize_sharding"),
    "distributed.tensor.experimental": (_TENSORS, "context_parallel register_sharding"),
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": (_HOOKS, "batched_powerSGD_hook"),
    "distributed.checkpoint": (
        _CHECKPOINTS,
        "BytesStorageMetadata ChunkStorageMetadata HuggingFaceStorageReader "
        "HuggingFaceStorageWriter LoadPlan LoadPlanner Metadata QuantizedHuggingFaceStorageReader "
        "ReadItem SavePlan SavePlanner StorageReader StorageWriter TensorStorageMetadata WriteItem "
        "load_sharded_optimizer_state_dict",
    ),
    "distributed.checkpoint.default_planner": (
        _CHECKPOINTS,
        "create_default_global_load_plan create_default_global_save_plan "
        "create_default_local_load_plan create_default_local_save_plan",
    ),
    "distributed.checkpoint.filesystem": (
        _CHECKPOINTS,
        "FileSystem FileSystemBase SerializationFormat",
    ),
    "distributed.checkpoint.format_utils": (
        _CHECKPOINTS,
        "BroadcastingTorchSaveReader DynamicMetaLoadPlanner _load_state_dict",
    ),
    "distributed.checkpoint.state_dict_loader": (_CHECKPOINTS, "_load_state_dict_from_keys"),
    "distributed.checkpoint.state_dict_saver": (
        _CHECKPOINTS,
        "AsyncCheckpointerType AsyncSaveResponse",
    ),
    "distributed.distributed_c10d": (
        "groups are made by new_group, over MPI; ranks that go away end the others",
        "ProcessGroupGloo ProcessGroupMPI ProcessGroupNCCL shrink_group",
    ),
    "distributed.fsdp": (_FULLY, "DataParallelMeshDims share_comm_ctx"),
    "distributed.launch": (_STARTED, "launch parse_args"),
    "distributed.nn": (_RPC, "RemoteModule"),
    "distributed.optim": (_OPTIMIZERS, "DistributedOptimizer as_functional_optim"),
    "distributed.pipelining.schedules": (
        _PIPELINES,
        "PipelineScheduleMulti PipelineScheduleSingle ScheduleDualPipeV ScheduleInterleaved1F1B "
        "ScheduleInterleavedZeroBubble ScheduleLoopedBFS ScheduleZBVZeroBubble get_schedule_class",
    ),
    "distributed.pipelining.stage": (_PIPELINES, "build_stage"),
    "distributed.run": (
        _STARTED,
        "LaunchConfig LogsSpecs DefaultLogsSpecs Std config_from_args determine_local_world_size "
        "elastic_launch parse_args parse_min_max_nnodes run_script_path",
    ),
    "distributed.pipelining": (
        _PIPELINES,
        "Pipe ScheduleDualPipeV ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble "
        "ScheduleLoopedBFS ScheduleZBVZeroBubble SplitPoint build_stage pipe_split pipeline",
    ),
    "distributed.rpc.api": (
        _RPC,
        "RRef _all_gather get_worker_info remote rpc_async rpc_sync shutdown",
    ),
    "fx.experimental.proxy_tensor": (
        _COMPILER,
        "_ProxyTensor _SymNodeDict decompose disable_proxy_modes_tracing fetch_object_proxy "
        "fetch_sym_proxy get_proxy_slot track_tensor_tree",
    ),
    "serialization": (
        "tensors without data are not written; save() writes what there is",
        "set_default_mmap_options skip_data",
    ),
    "onnx.symbolic_opset9": (_RULES, "masked_fill softmax"),
    "onnx.symbolic_opset11": (_RULES, "select squeeze unsqueeze"),
    "onnx.symbolic_opset12": (_RULES, "dropout"),
}


def lacking(module: str, name: str) -> Any:
    """What stands for a name that a module of clew's own does not have."""
    why, names = _LACKING.get(module, ("", ""))
    if name in names.split():
        return absent(module, name, why)
    raise AttributeError(f"module 'clew.{module}' has no attribute {name!r}")


def _real(name: str) -> Any:
    """Names that are plain data, or that clew has elsewhere; else None."""
    if name in ("DeviceMesh", "init_device_mesh"):
        from clew.distributed import device_mesh

        return getattr(device_mesh, name)
    if name in ("Partial", "Placement", "Replicate", "Shard", "_StridedShard"):
        from clew.distributed.tensor import placement_types

        return getattr(placement_types, name)
    if name == "is_available":  # asked before anything else of a module is used
        return lambda: False
    return None


def _late(made: types.ModuleType, module: str, name: str, why: str, has_module: Any) -> Any:
    import importlib

    if name.startswith("__"):
        raise AttributeError(f"module {made.__name__!r} has no attribute {name!r}")
    if has_module(f"{module}.{name}"):
        return importlib.import_module(f"torch.{module}.{name}")
    value = _real(name) or absent(module, name, why)
    setattr(made, name, value)
    return value


def make_module(name: str, has_module: Callable[[str], bool]) -> types.ModuleType:
    """The module of names that are not there.

    Args:
        name: the module's, without "torch.".
        has_module: whether there is a module of a name.
    """
    why, names = MODULES[name]
    made = types.ModuleType(f"torch.{name}", f"Names that clew does not have: {why}.")
    if name.startswith("distributed."):
        # These modules have hundreds of names, and libraries import many that one process never
        # uses: all are given, and none works.
        made.__getattr__ = (  # type: ignore[method-assign]
            lambda one: _late(made, name, one, why, has_module)
        )
    made.__path__ = []  # other such modules may be inside
    for one in names.split():
        setattr(made, one, _real(one) or absent(name, one, why))
    return made
