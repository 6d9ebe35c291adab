"""Dispatch modes: the operations that PyTorch's dispatcher shows of the same calls, as written
down from PyTorch 2.13, and results that a mode does not change."""

import math
from typing import ClassVar

import numpy as np
import pytest

import clew
from clew import nn
from clew._torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    return_and_correct_aliasing,
)
from clew.nn import functional as F
from clew.overrides import TorchFunctionMode


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.seen.append(str(func).removeprefix("aten.").removesuffix(".default"))
        return out


def given(seed=0):
    rng = np.random.default_rng(seed)
    t = lambda *shape: clew.tensor(rng.standard_normal(shape).astype(np.float32))
    return t


T = given()
X, X3, V, B3, IMAGE = T(4, 6), T(2, 5, 6), T(6), T(2, 6, 5), T(2, 3, 8, 8)
W, BIAS, KERNEL, TARGET = T(3, 6), T(3), T(4, 3, 3, 3), clew.tensor([1, 0, 5, 2])
Q, TWO_DIMS = T(2, 2, 4, 8), T(3, 5, 2)

# What is called, and what PyTorch's TorchDispatchMode prints of it.
IN_PLACE = {
    nn.ReLU6(True): "hardtanh_",
    nn.Hardtanh(-0.5, 0.5, True): "hardtanh_",
    nn.Threshold(0.1, 0.2, True): "threshold_",
    nn.SELU(True): "elu_",
    nn.ELU(0.5, True): "elu_",
    nn.CELU(0.5, True): "celu_",
    nn.LeakyReLU(0.1, True): "leaky_relu_",
    nn.SiLU(True): "silu_",
    nn.Mish(True): "mish_",
    nn.Hardswish(True): "hardswish_",
    nn.Hardsigmoid(True): "hardsigmoid_",
}
CALLS = {
    "linear": (lambda: F.linear(X, W, BIAS), "t addmm"),
    "linear of three dims": (lambda: F.linear(X3, W, BIAS), "view t addmm view"),
    "linear without bias": (lambda: F.linear(X, W), "t mm"),
    "linear of three, no bias": (lambda: F.linear(X3, W), "t view mm _unsafe_view"),
    "linear of one row": (lambda: F.linear(V, W), "t unsqueeze mm squeeze_.dim"),
    "linear, turned": (
        lambda: F.linear(X3.transpose(0, 1), W, BIAS),
        "transpose.int t expand view expand view bmm _unsafe_view add.Tensor",
    ),
    "mm": (lambda: X @ X.t(), "t mm"),
    "mv": (lambda: X @ V, "mv"),
    "dot": (lambda: V @ V, "dot"),
    "row": (lambda: V @ X.t(), "t unsqueeze mm squeeze_.dim"),
    "batches": (lambda: X3 @ B3, "expand view expand view bmm _unsafe_view"),
    "folded": (lambda: X3 @ X.t(), "t view mm _unsafe_view"),
    "broadcast": (
        lambda: B3.reshape(2, 1, 6, 5) @ TWO_DIMS,
        "view expand clone _unsafe_view expand clone _unsafe_view bmm _unsafe_view",
    ),
    "conv": (lambda: F.conv2d(IMAGE, KERNEL, padding=1), "convolution"),
    "conv same": (lambda: F.conv2d(IMAGE, KERNEL, padding="same"), "convolution"),
    "batch norm": (lambda: F.batch_norm(IMAGE, None, None, training=True), "native_batch_norm"),
    "layer norm": (lambda: F.layer_norm(X3, (6,)), "native_layer_norm"),
    "group norm": (lambda: F.group_norm(IMAGE, 3), "native_group_norm"),
    "relu6": (lambda: F.relu6(X), "hardtanh"),
    "hardtanh": (lambda: F.hardtanh(X, -0.5, 0.5), "hardtanh"),
    "threshold": (lambda: F.threshold(X, 0.1, 0.2), "threshold"),
    "selu": (lambda: F.selu(X), "elu"),
    "celu": (lambda: F.celu(X, 0.5), "celu"),
    "gelu": (lambda: F.gelu(X), "gelu"),
    "softmax": (lambda: F.softmax(X, -1), "_softmax"),
    "cross entropy": (lambda: F.cross_entropy(X, TARGET), "_log_softmax nll_loss_forward"),
    "mse": (lambda: F.mse_loss(X, X * 2), "mul.Tensor mse_loss"),
    "max pool": (lambda: F.max_pool2d(IMAGE, 2), "max_pool2d_with_indices"),
    "avg pool": (lambda: F.avg_pool2d(IMAGE, 2), "avg_pool2d"),
    "global pool": (lambda: F.adaptive_avg_pool2d(IMAGE, 1), "mean.dim"),
    "adaptive pool": (lambda: F.adaptive_avg_pool2d(IMAGE, 2), "_adaptive_avg_pool2d"),
    "pad": (lambda: F.pad(IMAGE, (1, 1)), "constant_pad_nd"),
    "reflect": (lambda: F.pad(IMAGE, (1, 1, 1, 1), mode="reflect"), "reflection_pad2d"),
    "attention": (
        lambda: F.scaled_dot_product_attention(Q, Q, Q),
        "_scaled_dot_product_flash_attention_for_cpu",
    ),
    "embedding": (lambda: F.embedding(TARGET, X3.view(10, 6)), "view embedding"),
    "flatten": (lambda: IMAGE.flatten(1), "view"),
    "reshape of turned": (lambda: X.t().reshape(-1), "t clone _unsafe_view"),
    "chunk": (lambda: X.chunk(2, 1)[0], "split.Tensor"),
    "split": (lambda: X.split([1, 3])[1], "split_with_sizes"),
    "slices": (lambda: X[:, 1:3], "slice.Tensor"),
    "number": (lambda: X[..., 0], "select.int"),
    "narrow": (
        lambda: X.narrow(1, -2, 2) + X.narrow(1, 0, 2),
        "slice.Tensor slice.Tensor add.Tensor",
    ),
    "cat": (lambda: clew.cat([X, X], dim=0, out=None), "cat"),
    "side by side": (
        lambda: clew.vstack([clew.hstack([X, X]), X3[0].repeat(1, 2)]),
        "cat select.int repeat cat",
    ),
    "like another": (lambda: X.view_as(X).expand_as(X).reshape_as(X.t()), "view expand t view"),
    "unflatten": (lambda: X.unflatten(1, (2, -1)), "view"),
    "movedim": (lambda: B3.movedim((0, 2), (1, 0)), "permute"),
    "ravel": (lambda: X.ravel(), "view"),
    "type as": (lambda: X.type_as(TARGET), "_to_copy"),
    "new dim": (lambda: X[None, 1], "unsqueeze select.int"),
    "mask": (lambda: X[X > 0], "gt.Scalar index.Tensor"),
    "set": (lambda: X.clone().__setitem__(0, X[1]), "clone select.int select.int copy_"),
    "arithmetic": (
        lambda: (1 + X) * 2 - X / 2,
        "add.Tensor mul.Tensor div.Tensor sub.Tensor",
    ),
    "turned around": (lambda: 1 - 1 / X, "reciprocal mul.Tensor rsub.Scalar"),
    "powers": (lambda: X**2 + 2**X, "pow.Tensor_Scalar pow.Scalar add.Tensor"),
    "compare": (lambda: (X > 0) & (X == X), "gt.Scalar eq.Tensor bitwise_and.Tensor"),
    "sums": (lambda: X.sum() + X.mean(1).max(), "sum mean.dim max add.Tensor"),
    "dtypes": (lambda: X.double().to(clew.float64), "_to_copy"),
    "item": (lambda: V[0].item(), "select.int _local_scalar_dense"),
    "out": (lambda: clew.add(V, V, out=V.new_empty(6)), "new_empty add.out"),
    "huber": (lambda: F.huber_loss(X, X * 3, delta=0.7), "mul.Tensor huber_loss"),
    "smooth": (lambda: F.smooth_l1_loss(X, X * 3, beta=0.3), "mul.Tensor smooth_l1_loss"),
    "sum of losses": (
        lambda: F.mse_loss(X, X * 2, reduction="sum") + F.nll_loss(X, TARGET, reduction="sum"),
        "mul.Tensor mse_loss nll_loss_forward add.Tensor",
    ),
    "mask, then numbers": (
        lambda: X3[:, X3[0] > 0] + 0 * X3[X3[..., 0] > -9, TARGET[:1]].sum(),
        "select.int gt.Scalar index.Tensor select.int gt.Scalar slice.Tensor index.Tensor "
        "sum mul.Tensor add.Tensor",
    ),
    "dropout, evaluating": (lambda: F.dropout(X, 0.5, False), ""),
}


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.flatten(2),
        lambda: X.flatten(1, 0),
        lambda: V[0].flatten(1),
        lambda: X.movedim(2, 0),
        lambda: X.movedim((0, 1), (0,)),
        lambda: X.movedim((0, 0), (0, 1)),
        lambda: X.unflatten(2, (1,)),
        lambda: X.unflatten(0, (-1, 3)),
        lambda: X.unflatten(0, ()),
        lambda: X.unflatten(0, 4),
        lambda: V[0].unflatten(0, (1, 1)),
        lambda: V[0].chunk(2),
        lambda: X.chunk(2, 2),
        lambda: X.chunk(0),
        lambda: X.chunk(-1),
        lambda: X.split(0),
        lambda: X.split([]),
        lambda: X.split([-1, 5]),
        lambda: X.tensor_split(0),
        lambda: X.hsplit(5),
        lambda: X.reshape(5),
        lambda: X.reshape_as(V),
        lambda: V[0].permute(),
        lambda: V[0].repeat(),
        lambda: V[0].narrow(0, 0, 1),
        lambda: X.narrow(2, 0, 1),
        lambda: X.narrow(0, 3, 2),
        lambda: X.narrow(0, clew.tensor(True), 1),
        lambda: clew.hstack([V, X]),
        lambda: clew.outer(X, X),
        lambda: F.conv1d(X3, X3, stride=2, padding="same"),
        lambda: F.conv1d(X3, X),
        lambda: F.group_norm(V, 1),
        lambda: F.prelu(X, V[:5]),
        lambda: F.prelu(X, X[:1, :1]),
        lambda: F.prelu(V[0], V),
    ],
)
def test_wrong_arguments_raise_as_without_a_mode(call):
    with pytest.raises((IndexError, RuntimeError, TypeError)) as plain:
        call()
    with Names(), pytest.raises(plain.type) as seen:
        call()
    assert str(seen.value).split(";")[0] == str(plain.value).split(";")[0]


@pytest.mark.parametrize("module", IN_PLACE, ids=str)
def test_activations_in_place(module):
    want = module(X.clone())
    with Names() as mode:
        x = X.clone()
        assert module(x) is x
    assert mode.seen == ["clone", IN_PLACE[module]]
    assert clew.equal(x, want)


@pytest.mark.parametrize("name", CALLS)
def test_operations_are_pytorchs(name):
    call, expected = CALLS[name]
    plain = call()
    with Names() as mode:
        got = call()
    assert mode.seen == expected.split()
    if isinstance(plain, clew.Tensor):
        assert got.shape == plain.shape and got.dtype == plain.dtype
        if name != "out" and "broadcast" not in name:
            assert np.allclose(got.numpy(), plain.numpy(), rtol=1e-5, atol=1e-6)


def test_a_turned_input_is_folded_for_a_weight_that_wants_a_gradient():
    weight = W.clone().requires_grad_()
    with Names() as mode:
        F.linear(X3.transpose(0, 1), weight, BIAS)
    expected = "transpose.int t clone _unsafe_view mm _unsafe_view add.Tensor"
    assert mode.seen == expected.split()


def test_broadcast_product():
    x, y = T(2, 1, 6, 5), T(3, 5, 2)
    with Names():
        got = x @ y
    assert np.allclose(got.numpy(), x.numpy() @ y.numpy(), atol=1e-5)


def test_module_and_gradient():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    net(IMAGE).sum().backward()
    expected = [p.grad.numpy().copy() for p in net.parameters()]
    net.zero_grad()
    with Names() as mode:
        loss = net(IMAGE).sum()
    assert mode.seen == "convolution relu view t addmm sum".split()
    loss.backward()
    for p, grad in zip(net.parameters(), expected):
        assert np.allclose(p.grad.numpy(), grad, rtol=1e-5)


def test_dropout_is_seen_and_keeps_the_mean():
    x = clew.ones(200, 200)
    with Names() as mode:
        y = F.dropout(x, 0.25)
    assert mode.seen == ["empty_like", "bernoulli_.float", "div_.Scalar", "mul.Tensor"]
    assert set(np.unique(y.numpy()).round(5)) == {0.0, np.float32(1 / 0.75).round(5)}
    assert abs(y.mean().item() - 1) < 0.02


def test_a_mode_may_answer_itself():
    class Zeros(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            return out * 0 if func is clew.ops.aten.mm.default else out

    with Zeros():
        assert (X @ X.t()).abs().sum() == 0
    assert (X @ X.t()).abs().sum() > 0


def test_modes_nest_and_end():
    with Names() as outer:
        with Names() as inner:
            assert _get_current_dispatch_mode() is inner
            X @ X.t()
            with _disable_current_modes():
                X + 1
        X + 1
    assert inner.seen == ["t", "mm"] and outer.seen == ["t", "mm", "add.Tensor"]
    assert _get_current_dispatch_mode() is None
    X + 1
    assert outer.seen[-1] == "add.Tensor" and len(outer.seen) == 3
    with pytest.raises(ZeroDivisionError), outer:
        raise ZeroDivisionError
    assert _get_current_dispatch_mode() is None


def test_the_same_mode_again():
    mode = Names()
    for _ in range(2):
        with mode:
            X + 1
    with mode, mode:
        X + 1
    assert len(mode.seen) == 4


def test_errors_come_through():
    with Names(), pytest.raises(RuntimeError, match="mm"):
        X @ X
    assert (X + 1).shape == (4, 6)

    class Nothing(TorchDispatchMode):
        pass

    with Nothing(), pytest.raises(NotImplementedError, match="__torch_dispatch__"):
        X + 1


def test_overloads_are_objects():
    mul = clew.ops.aten.mul
    assert mul.Tensor is mul.Tensor and mul.Tensor is not mul.Scalar
    assert mul.Tensor.overloadpacket is mul and mul.Tensor._overloadpacket is mul
    assert str(mul.Tensor) == "aten.mul.Tensor" and mul.Tensor.name() == "aten::mul.Tensor"
    assert clew.ops.aten.relu.default.name() == "aten::relu" and str(mul) == "aten.mul"
    assert mul.Tensor._schema.name == "aten::mul" and not mul.Tensor._schema.is_mutable
    assert clew.ops.aten.add_.Tensor._schema.is_mutable
    assert mul.Tensor(X, 2).tolist() == (X * 2).tolist()
    assert {mul.Tensor: 1}[mul.Tensor] == 1
    with pytest.raises(AttributeError, match="no operation 'nonsense'"):
        _ = clew.ops.aten.nonsense


def test_added_operations_are_seen():
    from clew.library import custom_op

    @custom_op("dispatch_tests::triple", mutates_args=())
    def triple(x: clew.Tensor) -> clew.Tensor:
        return x * 3

    with Names() as mode:
        y = triple(X)
        z = clew.ops.dispatch_tests.triple(X)
    assert y.tolist() == z.tolist() == (X * 3).tolist()
    assert mode.seen == ["dispatch_tests.triple"] * 2


def test_beneath_a_function_mode():
    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Names() as mode, Functions():
        F.linear(X, W)
    assert seen == ["linear"] and mode.seen == ["t", "mm"]


class Wrapped(clew.Tensor):
    """Holds a tensor and counts what is done with it."""

    log: ClassVar = []

    @staticmethod
    def __new__(cls, inner):
        return clew.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.log.append(str(func))
        take = lambda v: v.inner if isinstance(v, cls) else v
        args = tuple(map(take, args))
        out = func(*args, **{k: take(v) for k, v in (kwargs or {}).items()})
        made = cls(out) if isinstance(out, clew.Tensor) else out
        return return_and_correct_aliasing(func, args, kwargs, made)


def test_wrapper_subclass():
    Wrapped.log.clear()
    x = Wrapped(X)
    assert x.shape == (4, 6) and x.dtype == clew.float32 and x.device == clew.device("cpu")
    y = F.linear(x, W, BIAS).relu()
    assert type(y) is Wrapped and y.shape == (4, 3)
    expected = np.maximum(X.numpy() @ W.numpy().T + BIAS.numpy(), 0)
    assert np.allclose(y.inner.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert Wrapped.log == ["aten.addmm.default", "aten.relu.default"] or Wrapped.log == [
        "aten.t.default", "aten.addmm.default", "aten.relu.default"
    ]  # fmt: skip
    z = 2 - x + x.sum(1, keepdim=True)
    assert np.allclose(z.inner.numpy(), 2 - X.numpy() + X.numpy().sum(1, keepdims=True), atol=1e-5)


def test_sizes_and_dims_arrive_as_lists():
    class Arguments(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), args[1:], kwargs or {}))
            return func(*args, **(kwargs or {}))

    seen: list = []
    with Arguments():
        X.flip(0)
        X.sum(1)
        X.mean(0, keepdim=True)
        X.amax(1)
        X.new_empty(2, 3)
        X.new_empty((2, 3), dtype=clew.int64)
        X.narrow(0, 1, 2)
        clew.cat([X, X], dim=1)
    assert seen == [
        ("aten.flip.default", ([0],), {}),
        ("aten.sum.dim_IntList", ([1],), {}),
        ("aten.mean.dim", ([0],), {"keepdim": True}),
        ("aten.amax.default", ([1],), {}),
        ("aten.new_empty.default", ([2, 3],), {}),
        ("aten.new_empty.default", ([2, 3],), {"dtype": clew.int64}),
        ("aten.slice.Tensor", (0, 1, 3), {}),
        ("aten.cat.default", (1,), {}),
    ]
    with Arguments(), pytest.raises(RuntimeError, match="narrow"):
        X.narrow(0, 3, 2)


def test_wrapper_subclass_needs_dispatch():
    class Plain(clew.Tensor):
        pass

    with pytest.raises(RuntimeError, match="__torch_dispatch__"):
        clew.Tensor._make_wrapper_subclass(Plain, (2,))
    with pytest.raises(TypeError, match="subclass of Tensor"):
        clew.Tensor._make_wrapper_subclass(int, (2,))


def test_flop_formulas_by_operation():
    from clew.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(
        display=False, custom_mapping={clew.ops.aten.sinh: lambda x, out_shape: 7 * x[0]}
    ) as counter:
        clew.ones(3).sinh()
    assert counter.get_total_flops() == 21


ON_CPU = {"device": clew.device("cpu"), "pin_memory": False}
GENERATOR = clew.Generator()
# Functions that make tensors, and what PyTorch's TorchDispatchMode gets of them.
MAKERS = {
    "zeros": (lambda: clew.zeros(2, 3), "zeros.default", ([2, 3],), ON_CPU),
    "a list": (lambda: clew.ones((2, 3)), "ones.default", ([2, 3],), ON_CPU),
    "size": (lambda: clew.rand(size=(2,)), "rand.default", ([2],), ON_CPU),
    "dtype": (
        lambda: clew.zeros(2, dtype=clew.float64),
        "zeros.default",
        ([2],),
        {"dtype": clew.float64, **ON_CPU},
    ),
    "device": (
        lambda: clew.empty(2, device="meta"),
        "empty.memory_format",
        ([2],),
        {"device": clew.device("meta"), "pin_memory": False},
    ),
    "grad": (lambda: clew.randn(2, requires_grad=True), "randn.default", ([2],), ON_CPU),
    "generator": (
        lambda: clew.rand(2, generator=GENERATOR),
        "rand.generator",
        ([2],),
        {"generator": GENERATOR, **ON_CPU},
    ),
    "full": (lambda: clew.full((2,), 7), "full.default", ([2], 7), ON_CPU),
    "eye": (lambda: clew.eye(2), "eye.default", (2,), ON_CPU),
    "wide eye": (lambda: clew.eye(2, 3), "eye.m", (2, 3), ON_CPU),
    "arange": (lambda: clew.arange(3), "arange.default", (3,), ON_CPU),
    "from": (lambda: clew.arange(1, 3), "arange.start", (1, 3), ON_CPU),
    "step": (lambda: clew.arange(0, end=3, step=2), "arange.start_step", (0, 3, 2), ON_CPU),
    "linspace": (lambda: clew.linspace(0, 1, 3), "linspace.default", (0, 1, 3), ON_CPU),
    "logspace": (lambda: clew.logspace(0, 1, 3), "logspace.default", (0, 1, 3), ON_CPU),
    "randint": (lambda: clew.randint(3, (2,)), "randint.default", (3, [2]), ON_CPU),
    "low": (lambda: clew.randint(1, 3, (2,)), "randint.low", (1, 3, [2]), ON_CPU),
    "randperm": (lambda: clew.randperm(3), "randperm.default", (3,), ON_CPU),
    "normal": (lambda: clew.normal(0.0, 2.0, (2,)), "normal.float_float", (0.0, 2.0, [2]), ON_CPU),
    "strided": (
        lambda: clew.empty_strided((2,), (1,)),
        "empty_strided.default",
        ([2], [1]),
        ON_CPU,
    ),
    "number": (lambda: clew.scalar_tensor(1.5), "scalar_tensor.default", (1.5,), ON_CPU),
    "corner": (lambda: clew.tril_indices(2, 3), "tril_indices.default", (2, 3), ON_CPU),
    "window": (lambda: clew.hann_window(4), "hann_window.default", (4,), ON_CPU),
    "frequencies": (lambda: clew.fft.fftfreq(4), "fft_fftfreq.default", (4,), ON_CPU),
    "permuted": (
        lambda: clew.empty_permuted((2, 3), (1, 0)),
        "empty_permuted.default",
        ([2, 3], [1, 0]),
        ON_CPU,
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_functions_that_make_tensors_are_seen(name):
    call, operation, args, kwargs = MAKERS[name]
    seen: list = []

    class Arguments(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), args, kwargs or {}))
            return func(*args, **(kwargs or {}))

    clew.manual_seed(0)
    plain = call()
    clew.manual_seed(0)
    GENERATOR.manual_seed(0)
    with Arguments():
        got = call()
    assert seen == [(f"aten.{operation}", args, kwargs)]
    same = (got.shape, got.dtype, got.device, got.requires_grad, got.stride())
    assert same == (plain.shape, plain.dtype, plain.device, plain.requires_grad, plain.stride())
    if name not in ("device", "strided", "permuted", "generator"):  # these have no set values
        assert got.tolist() == plain.tolist()


def test_values_become_tensors_that_are_seen():
    class Arguments(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), args[0].tolist()))
            return func(*args, **(kwargs or {}))

    seen: list = []
    with Arguments():
        x = clew.tensor([1, 2])
        y = clew.tensor(1.5, requires_grad=True)
        assert clew.as_tensor(x) is x
        clew.as_tensor(np.ones(1))
    assert seen == [
        ("aten.lift_fresh.default", [1, 2]),
        ("aten.lift_fresh.default", 1.5),
        ("aten.lift_fresh.default", [1.0]),
    ]
    assert x.dtype == clew.int64 and y.requires_grad and y.is_leaf


def test_a_mode_decides_where_tensors_are_made():
    class OnMeta(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if "device" in kwargs:
                kwargs["device"] = "meta"
            return func(*args, **kwargs)

    with OnMeta():
        net = nn.Linear(1000, 1000)
        x = clew.rand(5, 1000)
        y = net(x)
    assert {t.device.type for t in (net.weight, net.bias, x, y)} == {"meta"}
    assert y.shape == (5, 1000)
    assert clew.rand(2).device.type == "cpu"


def test_moving_to_another_device_is_seen():
    with Names() as mode:
        assert X.to("meta").is_meta and X.to("cpu") is X
    assert mode.seen == ["_to_copy"]


def test_elu_scales_what_is_not_positive_alone():
    x = clew.tensor([-1.0, 0.0, 2.0])
    want = [2 * 1.5 * (math.exp(-3) - 1), 0.0, 4.0]
    assert clew.ops.aten.elu(x, 1.5, 2.0, 3.0).tolist() == pytest.approx(want)
    assert clew.ops.aten.elu_(x, 1.5, 2.0, 3.0) is x and x.tolist() == pytest.approx(want)
