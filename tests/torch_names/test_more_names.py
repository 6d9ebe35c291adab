"""Names that PyTorch's modules have and clew's own do not: what they give, and what they refuse."""

import importlib
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import clew
from clew import nn
from clew._torch import _more, names

SOURCE = str(Path(clew.__file__).parent.parent)
# Names by the way in which programs come to them, as attributes.
FOUND = """
torch.ByteStorage._from_buffer torch.FloatType torch.StorageBase torch.chalf torch.dsmm
torch.legacy_contiguous_format torch.matrix_rank torch.solve torch.symeig torch.while_loop
torch._C._get_cudnn_enabled torch._C._is_alias_of torch._C._is_torch_function_mode_enabled
torch._C._jit_set_nvfuser_enabled torch._cast_Long torch._check_tensor_all_with
torch._convert_indices_from_coo_to_csr torch._standard_gamma torch._tensor_str._str_intern
torch._tensor_str.PRINT_OPTS.threshold torch._tensor_str._tensor_str
torch._ops.OperatorBase torch._prims_common.is_contiguous_or_false torch._inductor.list_mode_options
torch._dynamo.exc.TensorifyScalarRestartAnalysis torch._dynamo.reset_code_caches
torch._subclasses.functional_tensor.mb_unwrap_functional_tensor
torch.accelerator.current_device_index torch.xpu.get_device_name torch.mps.synchronize
torch.mtia.is_available torch.cuda.cudart torch.cuda.sparse.FloatTensor torch.sparse.FloatTensor
torch.ao.quantization.default_observer torch.ao.quantization.fuse_modules_qat
torch.autograd._profiler_enabled torch.autograd.DeviceType.CUDA
torch.autograd.forward_ad._current_level
torch.backends.cuda.SDPAParams torch.backends.cuda.sdp_kernel torch.backends.cudnn.flags
torch.backends.opt_einsum.enabled torch.backends.quantized.engine torch.compiler.config
torch.distributed._rank_not_in_group torch.distributed.distributed_c10d._pg_map
torch.distributed.fsdp.FullyShardedDataParallel torch.distributed.ProcessGroupGloo
torch.distributed.tensor.placement_types.Shard.local_shard_size_and_offset
torch.fx.experimental.symbolic_shapes.guard_or_false torch.fx.passes.infra.pass_base.PassBase
torch.fx.experimental.proxy_tensor.get_proxy_slot torch.jit.Error torch.jit._recursive
torch.nn.functional.grouped_mm torch.nn.init._no_grad_uniform_ torch.nn.quantized.FloatFunctional
torch.ao.nn.quantized.FloatFunctional torch.ao.nn.quantized.Linear torch.nn.quantized.dynamic.Linear
torch.onnx.TensorProtoDataType torch.onnx.symbolic_helper.cast_pytorch_to_onnx
torch.onnx.symbolic_opset9.softmax torch.optim.Optimizer._group_tensors_by_device_and_dtype
torch.optim.optimizer._use_grad_for_differentiable torch.overrides.get_default_nowrap_functions
torch.profiler.profiler._default_schedule_fn torch.quantization.ObserverBase
torch.quantization.FakeQuantize torch.torch_version.TorchVersion torch.utils.swap_tensors
torch.utils.checkpoint.CheckpointPolicy torch._C._LinAlgError
torch._C._set_math_sdp_allow_fp16_bf16_reduction torch._functorch.config.enable_autograd_cache
torch._inductor.config.assert_indirect_indexing torch._inductor.utils.fresh_inductor_cache
torch._inductor.aoti_compile_and_package torch._inductor.package.load_package
torch._export.aot_compile torch.fx.experimental._config.use_duck_shape
torch.cuda._sleep torch.cuda.memory._record_memory_history torch.serialization.skip_data
torch.distributed._tensor.device_mesh.init_device_mesh
torch.distributed._tensor.placement_types.DTensorSpec torch.distributed.autograd.context
torch.distributed.checkpoint.HuggingFaceStorageReader
torch.distributed.checkpoint.state_dict._init_optim_state
torch.distributed.checkpoint.state_dict_loader._load_state_dict_from_keys
torch.distributed.get_default_backend_for_device torch.distributed.nn.RemoteModule
torch.distributed.rpc.functions.async_execution torch.distributed.tensor.parallel.loss_parallel
torch.nn.attention.flex_attention._mask_mod_signature torch.nn.utils.clip_grad._tensor_or_tensors
torch.distributed.all_gather_single torch.distributed.breakpoint torch.distributed.shrink_group
torch.distributed.distributed_c10d.is_mpi_available torch.distributed.distributed_c10d.DebugLevel
torch.distributed.nn.functional.group
torch.distributed.tensor.device_mesh.init_device_mesh torch.distributed.tensor.debug.CommDebugMode
torch.distributed.checkpoint.api.CheckpointException torch.distributed.checkpoint.StorageReader
torch.distributed.checkpoint.staging.DefaultStager torch.distributed.run.elastic_launch
torch.distributed.pipelining.schedules.ScheduleInterleaved1F1B torch.distributed.remote_device
torch.distributed.optim._apply_optimizer_in_backward torch.distributed.nn.api.remote_module
torch._C._VariableFunctions.gru torch._C.Tag torch._VF.lstm torch.cuda.AcceleratorError
torch.FatalError torch.JITException torch.Graph torch.ScriptObject torch.has_lapack
torch.Tag.pt2_compliant_tag torch.compiled_with_cxx11_abi torch.per_channel_affine
torch.quantize_per_tensor torch.sym_constrain_range torch.autograd.NestedIOFunction
torch.autograd.function.InplaceFunction torch.backends.cuda.preferred_blas_library
torch.compiler.nested_compile_region torch.cuda.set_per_process_memory_fraction
torch.distributions.kl.Normal torch.distributions.transforms.F torch.export.register_dataclass
torch.functional.Tensor torch.jit.ScriptWarning torch.nested.F torch.nn.factory_kwargs
torch.nn.functional.has_torch_function_variadic torch.nn.init.Tensor torch.nn.utils.rnn.Tensor
torch.optim.adam.adam torch.optim._functional.sgd
torch.optim.lr_scheduler.Optimizer torch.optim.Optimizer.profile_hook_step
torch.overrides.has_torch_function_unary torch.random.thread_safe_generator
torch.types.py_sym_types torch.utils.data.dataloader.Dataset torch.utils.data.distributed.dist
torch.utils.dlpack.DLDeviceType.kDLCPU torch.utils._device.DeviceContext
torch.utils.deterministic.fill_uninitialized_memory
"""


def test_all_are_found_and_slips_are_not():
    program = (
        "import json, sys, torch\n"
        "missing = []\n"
        "for name in json.loads(sys.argv[1]):\n"
        "    value = torch\n"
        "    for part in name.split('.')[1:]:\n"
        "        try: value = getattr(value, part)\n"
        "        except AttributeError as error: missing.append(str(error)); break\n"
        "from torch.optim.optimizer import _use_grad_for_differentiable\n"
        "from torch.nn.quantized import FloatFunctional\n"
        "import torch.compiler.config, torch.cuda.sparse, torch.nn.quantized.dynamic\n"
        "print(json.dumps(missing))\n"
    )
    slips = ["torch.xpu.no_such_thing", "torch.utils.swap_tensor", "torch.nn.quantized.Floats"]
    done = subprocess.run(
        [sys.executable, "-m", "clew", "run", "-c", program, json.dumps([*FOUND.split(), *slips])],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert [text.partition(";")[0] for text in json.loads(done.stdout)] == [
        "clew has no 'torch.xpu.no_such_thing'",
        "clew has no 'torch.utils.swap_tensor'",
        "clew has no 'torch.nn.quantized.Floats'",
    ]


@pytest.mark.parametrize(
    ("module", "name", "error"),
    [
        ("accelerator", "synchronize", RuntimeError),
        ("xpu", "get_device_name", AssertionError),
        ("mps", "current_allocated_memory", RuntimeError),
        ("backends.mps", "is_macos_or_newer", RuntimeError),
        ("cuda", "cudart", AssertionError),
        ("cuda.memory", "_record_memory_history", AssertionError),
    ],
)
def test_what_needs_a_device_raises(module, name, error):
    with pytest.raises(error, match=f"torch.{module}.{name}: there is no"):
        _more.find(module, name)()


def test_backends_of_devices():
    backend = _more.find("distributed", "get_default_backend_for_device")
    assert backend("cpu") == backend(clew.device("cpu")) == "gloo"
    assert backend("cuda:1") == "nccl"
    with pytest.raises(ValueError, match="no backend is known for 'abacus'"):
        backend("abacus")
    with pytest.raises(ValueError, match="no backend"):
        backend(3)


def test_an_optimizer_begins_its_state():
    begin = _more.find("distributed.checkpoint.state_dict", "_init_optim_state")
    p = nn.Parameter(clew.tensor([1.0, 2.0]))
    adam = clew.optim.Adam([p], lr=0.1)
    begin(adam)
    assert set(adam.state_dict()["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    assert p.tolist() == [1, 2] and p.grad is None and adam.param_groups[0]["lr"] == 0.1
    p.grad = clew.ones(2)
    adam.step()
    before = adam.state[p]["exp_avg"].tolist()
    begin(adam)  # which has stepped: it stays as it is
    assert adam.state[p]["exp_avg"].tolist() == before


def test_switches_of_compilers_are_set_for_a_while():
    for home, name in (
        ("_dynamo.config", "optimize_ddp"),
        ("_functorch.config", "enable_autograd_cache"),
        ("_inductor.config", "assert_indirect_indexing"),
        ("fx.experimental._config", "use_duck_shape"),
    ):
        config = importlib.import_module(f"clew._torch.{home}")
        with config.patch({name: False}):
            assert getattr(config, name) is False
        assert getattr(config, name) is True
        with config.patch(name, 3), config.patch(a_new_one=4):
            assert (getattr(config, name), config.a_new_one) == (3, 4)
        assert getattr(config, name) is True and not hasattr(config, "a_new_one")
    with importlib.import_module("clew._torch._inductor.utils").fresh_inductor_cache():
        pass


def test_a_function_without_gradients():
    without = _more.find("nn.utils.clip_grad", "_no_grad")
    w = clew.ones(1, requires_grad=True)
    assert not without(lambda: w * 2)().requires_grad and (w * 2).requires_grad


def test_sparse_types():
    kind = clew.sparse.FloatTensor
    indices, values = clew.tensor([[0, 1], [1, 0]]), clew.tensor([3.0, 4.0])
    made = kind(indices, values, clew.Size([2, 3]))
    assert made.to_dense().tolist() == [[0, 3, 0], [4, 0, 0]] and made.layout == clew.sparse_coo
    assert kind(indices, values).shape == (2, 2) and kind().shape == (0,)
    assert kind(2, 3).to_dense().tolist() == [[0] * 3] * 2
    assert isinstance(made, kind) and not isinstance(made.to_dense(), kind)
    assert not isinstance(made, clew.sparse.DoubleTensor)
    assert kind.is_sparse and kind.dtype is clew.float32 and kind.layout == clew.sparse_coo
    for args in ((indices,), ([[0]], [1.0]), (made,), (True,)):
        with pytest.raises(TypeError, match="sizes, or tensors"):
            kind(*args)
    cuda = importlib.import_module("clew._torch.cuda.sparse").FloatTensor
    assert not isinstance(made, cuda)
    with pytest.raises(TypeError, match="no CUDA device"):
        cuda(2, 3)


def test_products_of_groups():
    grouped_mm = _more.find("nn.functional", "grouped_mm")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float32") for s in ((5, 3), (2, 3, 4)))
    offs = clew.tensor([2, 4], dtype=clew.int32)
    x, w = (clew.from_numpy(v).requires_grad_() for v in (a, b))
    got = grouped_mm(x, w, offs=offs)
    want = np.concatenate([a[:2] @ b[0], a[2:4] @ b[1], np.zeros((1, 4))])
    np.testing.assert_allclose(got.detach().numpy(), want, atol=1e-5)
    got.sum().backward()
    np.testing.assert_allclose(w.grad[1].numpy(), a[2:4].T @ np.ones((2, 4)), atol=1e-5)
    batches = grouped_mm(clew.ones(2, 4, 3), w)
    np.testing.assert_allclose(batches.detach()[1].numpy(), np.ones((4, 3)) @ b[1], atol=1e-5)
    inner = grouped_mm(clew.from_numpy(a.T.copy()), clew.from_numpy(a), offs=offs)
    np.testing.assert_allclose(inner[1].numpy(), a[2:4].T @ a[2:4], atol=1e-5)
    outer = grouped_mm(clew.ones(2, 4, 3), clew.from_numpy(b[0]), offs=offs)
    np.testing.assert_allclose(outer.numpy(), np.ones((4, 3)) @ b[0], atol=1e-5)
    for change, message in (
        ({"offs": None}, "one-dimensional and int32"),
        ({"offs": offs.long()}, "one-dimensional and int32"),
        ({"offs": offs[:1]}, "an end for each matrix"),
        ({"offs": clew.tensor([3, 2], dtype=clew.int32)}, "must rise"),
        ({"offs": clew.tensor([3, 6], dtype=clew.int32)}, "must rise"),
        ({"bias": clew.ones(4)}, "bias"),
        ({"out_dtype": clew.bfloat16}, "out_dtype"),
    ):
        with pytest.raises(RuntimeError, match=message):
            grouped_mm(x, w, **{"offs": offs, **change})
    with pytest.raises(RuntimeError, match="float32, bfloat16 or float16"):
        grouped_mm(x.double(), w.double(), offs=offs)
    with pytest.raises(RuntimeError, match="columns of mat_a"):
        grouped_mm(clew.ones(5, 2), w, offs=offs)


def test_indices_of_rows():
    rows = clew.tensor([0, 0, 2])
    crow = names._convert_indices_from_coo_to_csr(rows, 4)
    assert crow.tolist() == [0, 2, 2, 3, 3] and crow.dtype is clew.int64
    assert names._convert_indices_from_coo_to_csr(rows, 4, out_int32=True).dtype is clew.int32
    crow, col = clew.tensor([0, 2, 2, 3]), clew.tensor([1, 0, 2])
    assert names._convert_indices_from_csr_to_coo(crow, col).tolist() == [[0, 0, 2], [1, 0, 2]]
    turned = names._convert_indices_from_csr_to_coo(crow, col, transpose=True, out_int32=True)
    assert turned.tolist() == [[1, 0, 2], [0, 0, 2]] and turned.dtype is clew.int32


def test_loops():
    count, x = names.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (clew.tensor(0), clew.ones(2))
    )
    assert count == 3 and x.tolist() == [8, 8]
    for condition, body in (
        (lambda x: x, lambda x: (x,)),
        (lambda x: 1, lambda x: (x,)),
        (lambda x: clew.tensor([True, True]), lambda x: (x,)),
        (lambda x: True, lambda x: x),
        (lambda x: True, lambda x: (x, x)),
        (None, lambda x: (x,)),
    ):
        with pytest.raises(RuntimeError, match="while_loop"):
            names.while_loop(condition, body, (clew.ones(1),))


def test_an_optimizer_written_with_these_helpers():
    use_grad = _more.find("optim.optimizer", "_use_grad_for_differentiable")

    class Plain(clew.optim.Optimizer):
        def __init__(self, params, differentiable=False):
            super().__init__(params, {"differentiable": differentiable})

        @use_grad
        def step(self):
            """What a step does."""
            modes.append(clew.is_grad_enabled())
            return 7

    modes = []
    w = clew.ones(1, requires_grad=True)
    assert Plain([w]).step() == 7 and Plain([w], True).step() == 7 and modes == [False, True]
    assert Plain.step.__doc__ == "What a step does."
    choose = _more.find("optim.optimizer", "_default_to_fused_or_foreach")
    assert choose([w], False, False) == choose([w], True, True) == (False, False)
    assert choose([w], False, True) == (True, False)
    group = clew.optim.Optimizer._group_tensors_by_device_and_dtype
    a, b = clew.ones(1), clew.ones(1).double()
    found = group([[a, b], [b, a]], with_indices=True)
    cpu = clew.device("cpu")
    assert found[cpu, clew.float32][0] == [[a], [b]] and found[cpu, clew.float64][1] == [1]
    assert group([[a, b], []])[cpu, clew.float32] == ([[a], []], [])


def test_settings_of_attention_and_cudnn():
    cuda = importlib.import_module("clew._torch._more.backends_cuda")
    with cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    assert cuda.flash_sdp_enabled()
    x = clew.ones(1, 1, 2, 2)
    assert cuda.can_use_flash_attention(cuda.SDPAParams(x, x, x, None, 0.0, False, False)) is False
    cudnn = clew.backends.cudnn
    with pytest.raises(KeyError), cudnn.flags(enabled=False, benchmark=True):
        assert (cudnn.enabled, cudnn.benchmark) == (False, True)
        assert importlib.import_module("clew._torch._C")._get_cudnn_enabled() is False
        raise KeyError
    assert (cudnn.enabled, cudnn.benchmark) == (True, False)


def test_tensors_change_places():
    swap = _more.find("utils", "swap_tensors")
    p, t = nn.Parameter(clew.ones(2)), clew.tensor([[5, 6, 7]])
    p.grad = clew.full((2,), 3.0)
    p.mark = "p"
    view = p.detach()
    swap(p, t)
    assert p.tolist() == [[5, 6, 7]] and type(p) is clew.Tensor and p.grad is None
    assert not p.requires_grad and not hasattr(p, "mark") and p.dtype is clew.int64
    assert isinstance(t, nn.Parameter) and t.requires_grad and t.grad.tolist() == [3, 3]
    assert t.mark == "p"
    view.zero_()  # memory goes along
    assert t.tolist() == [0, 0]
    reference = weakref.ref(t)
    with pytest.raises(RuntimeError, match="t1 has a weak reference"):
        swap(t, p)
    del reference
    with pytest.raises(RuntimeError, match="t2 is the result of an operation"):
        swap(t, clew.ones(1, requires_grad=True) * 2)


def test_float_functional():
    functional = _more.find("ao.nn.quantized", "FloatFunctional")()
    functional.activation_post_process = nn.Tanh()
    a, b = clew.tensor([1.0, -3.0]), clew.tensor([2.0, 1.0])
    assert clew.equal(functional.add(a, b), clew.tanh(a + b))
    assert clew.equal(functional.mul(a, b), clew.tanh(a * b))
    assert clew.equal(functional.cat([a, b], dim=0), clew.tanh(clew.cat([a, b])))
    assert clew.equal(functional.add_relu(a, b), clew.tanh(clew.relu(a + b)))
    assert clew.equal(functional.matmul(a, b), clew.tanh(a @ b))
    assert functional.add_scalar(a, 1.0).tolist() == [2, -2]
    assert functional.mul_scalar(a, 2.0).tolist() == [2, -6]
    with pytest.raises(RuntimeError, match="such as add"):
        functional(a)
    with pytest.raises(NotImplementedError, match="quantize_dynamic"):
        _more.find("ao.nn.quantized", "Linear")(1, 1)


def test_small_questions():
    shapes = importlib.import_module("clew._torch.fx.experimental.symbolic_shapes")
    assert shapes.guard_or_false(3 < 4) and not shapes.statically_known_true(False)
    assert shapes.free_symbols(clew.ones(2)) == set() and shapes.guard_int(3) == 3
    level = lambda: _more.find("autograd.forward_ad", "_current_level")
    assert level() == -1
    with clew.autograd.forward_ad.dual_level():
        assert level() == 0
    running = _more.find("autograd", "_profiler_enabled")
    stop = _more.find("autograd", "_disable_profiler")
    assert not running()
    with clew.profiler.profile():
        assert running()
    with pytest.raises(RuntimeError, match="no profiler"):
        stop()
    clew.autograd.profiler.profile().__enter__()
    stop()
    assert not running()
    native = importlib.import_module("clew._torch._C")
    x = clew.ones(4)
    assert native._is_alias_of(x, x[2:]) and not native._is_alias_of(x, x.clone())
    assert native._get_default_device() == "cpu"
    assert native._jit_set_profiling_mode(False) is True
    assert native._jit_set_profiling_mode(True) is False
    native._jit_override_can_fuse_on_cpu(True)
    assert native._jit_can_fuse_on_cpu() is True
    native._jit_override_can_fuse_on_cpu(False)
    assert not native._is_torch_function_mode_enabled()
    assert clew.ByteStorage._from_buffer(b"ab").tolist() == [97, 98]
    add = _more.find("_tensor_str", "_add_suffixes")
    assert add("tensor([1]", ["a=1"], 7, False) == "tensor([1], a=1)"
    assert add("tensor([1]", ["a=1", "b"], 7, True) == "tensor([1],\n       a=1, b)"
    part = clew.distributed.tensor.Shard.local_shard_size_and_offset
    assert [part(5, 4, r) for r in range(4)] == [(2, 0), (2, 2), (1, 4), (0, 5)]
    mask = _more.find("nn.functional", "_canonical_mask")
    assert mask(clew.tensor([True, False]), "m", None, "", clew.float32).tolist() == [
        float("-inf"),
        0,
    ]
    with pytest.warns(UserWarning, match="mismatched m and other"):
        mask(clew.ones(1), "m", clew.bool, "other", clew.float32)
    with pytest.raises(AssertionError, match="bool and floating"):
        mask(clew.ones(1).long(), "m", None, "", clew.float32)
    with pytest.raises(RuntimeError, match=r"torch.solve was removed.*linalg.solve"):
        names.solve(x, x)
    with pytest.raises(ValueError, match="all"):
        names._check_tensor_all_with(ValueError, clew.tensor([True, False]), lambda: "all")


def test_messages_of_tensorboard():
    pytest.importorskip("tensorboard")
    summary = importlib.import_module("clew._torch.utils.tensorboard.summary")
    experiment, start, end = summary.hparams({"lr": 0.5, "name": "a"}, {"loss": 0})
    tags = [message.value[0].tag for message in (experiment, start, end)]
    assert tags == [
        "_hparams_/experiment",
        "_hparams_/session_start_info",
        "_hparams_/session_end_info",
    ]
    assert b"loss" in experiment.value[0].metadata.plugin_data.content
    assert summary.scalar("a", clew.tensor(2.0)).value[0].simple_value == 2
    assert summary.histogram("h", clew.arange(4.0), bins=2).value[0].histo.num == 4
    assert summary.image("i", clew.zeros(1, 3, 2, 5)).value[0].image.height == 2
    assert summary.text("t", "x").value[0].tensor.string_val[0] == b"x"
    with pytest.raises(NotImplementedError, match="rescale"):
        summary.image("i", clew.zeros(1, 3, 2, 5), rescale=2)


def test_what_a_compiler_would_tell():
    from clew._torch._dynamo import explain

    calls = []

    def f(x, y=1):
        calls.append((x, y))

    told = explain(f)(3, y=2)
    assert calls == [(3, 2)] and (told.graph_count, told.graph_break_count) == (0, 0)
    assert told.graphs == told.break_reasons == told.ops_per_graph == [] and told.op_count == 0
    assert str(told).splitlines()[:3] == ["Graph Count: 0", "Graph Break Count: 0", "Op Count: 0"]
    assert explain(f, 4).graph_count == 0 and calls[1] == (4, 1)


@pytest.mark.parametrize(
    "module, name, advice",
    [
        ("distributed.rpc", "rpc_sync", "all_gather_object"),
        ("distributed.launcher.api", "elastic_launch", "clew launch"),
        ("distributed.checkpoint.storage", "StorageReader", r"distributed.checkpoint.save"),
        ("distributed.fsdp._runtime_utils", "_lazy_init", "fully_shard"),
        ("distributed.tensor.parallel.input_reshard", "input_reshard", "parallelize_module"),
        ("distributed.algorithms.ddp_comm_hooks.ddp_zero_hook", "hook_with_zero_step", "powerSGD"),
    ],
)
def test_what_processes_do_otherwise_is_said(module, name, advice):
    from clew._torch import absent

    made = absent.make_module(module, lambda name: False)
    with pytest.raises(NotImplementedError, match=f"torch.{module}.{name}: .*{advice}"):
        getattr(made, name)()
    assert made.is_available() is False
    with pytest.raises(NotImplementedError, match="ScheduleGPipe"):
        absent.lacking("distributed.pipelining.schedules", "ScheduleInterleaved1F1B")()


def test_packages_say_what_to_do_instead():
    from clew._torch import absent

    package = absent.make_module("package", lambda name: False)
    for kind in (package.PackageExporter, package.PackageImporter):
        with pytest.raises(NotImplementedError, match=r"torch.package.Package.*state_dict\(\)"):
            kind("model.pt")


class Doubled(nn.Module):
    """No layer of it says what its input looks like."""

    def forward(self, x):
        return x + x


def test_a_scripted_module_says_what_save_needs(tmp_path):
    import copy
    import pickle

    module = clew.jit.script(Doubled())
    for each in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        with pytest.raises(RuntimeError, match="Doubled has no program.*call it once.*jit.trace"):
            each.save(tmp_path / "m.pt")
    with pytest.raises(RuntimeError, match="has no program"):
        clew.jit.save(module, tmp_path / "m.pt")
    x = clew.ones(3, 2)
    clew.jit.script(module, example_inputs=[(x,)]).save(tmp_path / "m.pt")
    assert clew.equal(clew.jit.load(tmp_path / "m.pt")(x), module(x))


def test_rounding_to_integers_of_few_bits():
    from clew import _torch

    each, channels = map(
        _torch.find, ("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine")
    )
    values = np.array([[-2.0, -0.26, 0.0], [0.24, 0.44, 9.0]], "float32")
    x = clew.tensor(values, requires_grad=True)
    for scale, zero in ((0.1, 3), (clew.tensor(0.1), clew.tensor(3, dtype=clew.int32))):
        got = each(x, scale, zero, -8, 7)
        places = np.round(values * 10) + 3
        want = (places.clip(-8, 7) - 3) / 10
        np.testing.assert_allclose(got.detach().numpy(), want, atol=1e-6)
        (gradient,) = clew.autograd.grad(got.sum(), x)
        assert gradient.tolist() == ((places >= -8) & (places <= 7)).astype(float).tolist()
    scales, zeros = clew.tensor([0.1, 1.0]), clew.tensor([0, -1])
    got = channels(x, scales, zeros, 0, -4, 3)
    rows = [each(x[i], scales[i], zeros[i], -4, 3) for i in range(2)]
    assert clew.equal(got, clew.stack(rows))
    assert clew.equal(channels(x.t(), scales, zeros, 1, -4, 3), got.t())
    for wrong, match in (
        (lambda: each(x, 0.1, 8, -8, 7), "zero_point"),
        (lambda: each(x, 0.1, 0, 8, 7), "quant_min"),
        (lambda: each(x.long(), 0.1, 0, -8, 7), "floating point"),
        (lambda: channels(x, clew.ones(3), zeros, 0, -4, 3), "must have 2 elements"),
    ):
        with pytest.raises(RuntimeError, match=match):
            wrong()


def test_a_hybrid_product():
    a = clew.tensor([[0.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    made = names.hspmm(a.to_sparse(), clew.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert (made.sparse_dim(), made.dense_dim()) == (1, 1)
    assert made.indices().tolist() == [[0, 2]]
    assert made.to_dense().tolist() == [[6.0, 8.0], [0.0, 0.0], [6.0, 10.0]]
    with pytest.raises(RuntimeError, match="sparse_coo"):
        names.hspmm(a, a)


def test_hooks_of_a_tensor_as_a_dict():
    x, y = clew.ones(2, requires_grad=True), clew.ones(2, requires_grad=True)
    assert x._backward_hooks is None and clew.ones(2)._backward_hooks is None
    handle = x.register_hook(lambda g: g * 3)
    assert len(x._backward_hooks) == 1
    y._backward_hooks = x._backward_hooks
    y.sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]
    y._backward_hooks = None
    handle.remove()
    assert x._backward_hooks is None and y._backward_hooks is None
    clew.ones(2)._backward_hooks = {}  # as files of PyTorch's tensors say
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        clew.ones(2)._backward_hooks = {0: lambda g: g}


def test_gradients_of_convolutions_are_in_functional_too():
    assert clew.nn.functional.grad is clew.nn.grad


def test_a_device_as_a_context_and_a_decorator():
    from clew._torch.utils._device import DeviceContext, set_device

    with DeviceContext("meta") as context:
        assert clew.ones(2).is_meta and context.device == clew.device("meta")

    @set_device(clew.device("meta"))
    def made(n):
        "A text."
        return clew.zeros(n)

    assert made(3).is_meta and made.__doc__ == "A text."
    assert not clew.ones(1).is_meta


def test_empty_tensors_are_not_filled():
    from clew._torch.utils import deterministic

    assert deterministic.fill_uninitialized_memory is False
    deterministic.fill_uninitialized_memory = False
    with pytest.raises(NotImplementedError, match="zeros"):
        deterministic.fill_uninitialized_memory = True
    with pytest.raises(RuntimeError, match="bool"):
        deterministic.fill_uninitialized_memory = 1
