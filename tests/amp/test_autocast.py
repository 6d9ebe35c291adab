"""autocast: the dtype each operation runs in, kept casts, gradients, nesting, threads."""

from __future__ import annotations

import json
import pathlib
import threading
import warnings
from typing import ClassVar

import pytest
from autocast_cases import CASES, INPUTS, outcome

import clew
from clew.utils.checkpoint import checkpoint

F = clew.nn.functional
EXPECTED = json.loads((pathlib.Path(__file__).parent / "autocast_dtypes.json").read_text())
DTYPES = ("bfloat16", "float16")


@pytest.mark.parametrize("name", CASES)
def test_result_dtypes_are_pytorchs(name):
    for inputs in INPUTS:
        for dtype in DTYPES:
            want = EXPECTED[name][f"{inputs} in {dtype}"]
            if want != "error":  # clew may do more
                assert outcome(clew, CASES[name], inputs, dtype) == want, (inputs, dtype)


def test_the_recorded_cases_are_the_cases():
    assert set(EXPECTED) == set(CASES)


def product(x, w):
    return clew.mm(x, w)


def test_parameters_are_cast_once_in_a_region():
    w, x = clew.ones(3, 3, requires_grad=True), clew.ones(2, 3)
    with clew.autocast("cpu"):
        a, b = product(x, w), product(x, w)
        assert a.grad_fn.next_functions[1][0] is b.grad_fn.next_functions[1][0]
        with clew.autocast("cpu"):
            c = product(x, w)
        assert c.grad_fn.next_functions[1][0] is a.grad_fn.next_functions[1][0]
        clew.clear_autocast_cache()
        d = product(x, w)
        assert d.grad_fn.next_functions[1][0] is not a.grad_fn.next_functions[1][0]
    (a.float().sum() + b.float().sum() + c.float().sum() + d.float().sum()).backward()
    assert w.grad.dtype == clew.float32
    assert w.grad.tolist() == [[8.0] * 3] * 3


def test_without_a_cache_every_use_is_cast():
    w, x = clew.ones(3, 3, requires_grad=True), clew.ones(2, 3)
    with clew.autocast("cpu", cache_enabled=False):
        a, b = product(x, w), product(x, w)
    assert a.grad_fn.next_functions[1][0] is not b.grad_fn.next_functions[1][0]


def test_casts_end_with_the_region():
    import gc

    gc.collect()  # what other tests left would go in between
    w = clew.ones(64, 64, requires_grad=True)
    x = clew.ones(2, 64)
    with clew.no_grad():
        with clew.autocast("cpu"):
            product(x, w)
            inside = clew._C._memory_stats()["live_bytes"]
        gc.collect()
        assert clew._C._memory_stats()["live_bytes"] == inside - 64 * 64 * 2


def test_a_cast_made_without_recording_is_not_used_where_a_gradient_is_wanted():
    w, x = clew.ones(3, 3, requires_grad=True), clew.ones(2, 3)
    with clew.autocast("cpu"):
        with clew.no_grad():
            product(x, w)
        with clew.inference_mode():
            product(x, w)
        y = product(x, w)
    y.float().sum().backward()
    assert w.grad is not None


def test_a_cast_is_made_again_after_the_parameter_was_written():
    w, x = clew.ones(2, 2, requires_grad=True), clew.ones(1, 2)
    with clew.autocast("cpu"):
        assert product(x, w)[0, 0].item() == 2
        with clew.no_grad():
            w.mul_(3)
        assert product(x, w)[0, 0].item() == 6
        w.data = clew.zeros(2, 2)
        assert product(x, w)[0, 0].item() == 0


def test_two_steps_in_one_region_train():
    w = clew.ones(2, 2, requires_grad=True)
    opt = clew.optim.SGD([w], lr=0.25)
    x = clew.eye(2)
    with clew.autocast("cpu"):
        for _ in range(2):
            opt.zero_grad()
            product(x, w).float().sum().backward()
            opt.step()
    assert w.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_gradients_are_those_of_the_rounded_values():
    clew.manual_seed(0)
    model = clew.nn.Sequential(clew.nn.Linear(8, 16), clew.nn.GELU(), clew.nn.Linear(16, 4))
    x, y = clew.randn(32, 8), clew.randint(0, 4, (32,))
    F.cross_entropy(model(x), y).backward()
    want = [p.grad for p in model.parameters()]
    model.zero_grad()
    with clew.autocast("cpu"):
        scores = model(x)
        assert scores.dtype == clew.bfloat16
        loss = F.cross_entropy(scores, y)
        assert loss.dtype == clew.float32
    loss.backward()
    for p, g in zip(model.parameters(), want):
        assert p.grad.dtype == clew.float32
        assert clew.allclose(p.grad, g, atol=0.01 * g.abs().max().item() + 1e-4)


def test_backward_inside_the_region_is_the_same():
    x = clew.arange(6.0).reshape(2, 3).requires_grad_()
    w = clew.arange(6.0).reshape(3, 2).requires_grad_()
    grads = []
    for inside in (False, True):
        x.grad = w.grad = None
        with clew.autocast("cpu"):
            y = clew.linalg.vector_norm(product(x, w).float() ** 2)
            if inside:
                y.backward()
        if not inside:
            y.backward()
        grads.append((x.grad.tolist(), w.grad.tolist()))
    assert grads[0] == grads[1]


def test_second_derivatives():
    w = clew.ones(2, 2, requires_grad=True)
    with clew.autocast("cpu"):
        y = (product(w, w).float() ** 2).sum()
        (g,) = clew.autograd.grad(y, w, create_graph=True)
    g.sum().backward()
    assert w.grad.tolist() == [[48.0, 48.0], [48.0, 48.0]]


def test_nesting_and_disabling():
    a, b = clew.ones(2, 2), clew.ones(2, 2)
    with clew.autocast("cpu"):
        e = a @ b
        assert clew.is_autocast_enabled("cpu")
        with clew.autocast("cpu", enabled=False):
            assert not clew.is_autocast_enabled("cpu")
            assert (a @ b).dtype == clew.float32
            with pytest.raises(RuntimeError):
                e @ b
            assert (e.float() @ b).dtype == clew.float32
        with clew.autocast("cpu", dtype=clew.float16):
            assert (e @ b).dtype == clew.float16
        assert (e @ b).dtype == clew.bfloat16
    assert not clew.is_autocast_enabled("cpu")
    assert (a @ b).dtype == clew.float32


def test_state_returns_after_an_exception():
    with pytest.raises(KeyError):
        with clew.autocast("cpu", dtype=clew.float16, cache_enabled=False):
            raise KeyError
    assert not clew.is_autocast_enabled("cpu")
    assert clew.get_autocast_dtype("cpu") == clew.bfloat16
    assert clew.is_autocast_cache_enabled()


def test_decorator_also_of_a_function_that_calls_itself():
    region = clew.autocast("cpu")

    @region
    def f(n):
        """Doc."""
        inner = [] if n == 0 else f(n - 1)
        return [(clew.ones(1, 1) @ clew.ones(1, 1)).dtype, *inner]

    assert f.__name__ == "f" and f.__doc__ == "Doc."
    assert f(2) == [clew.bfloat16] * 3
    assert not clew.is_autocast_enabled("cpu")
    with pytest.raises(TypeError, match="requires a callable"):
        region(3)


def test_other_threads_are_not_inside():
    seen = []

    def look():
        seen.append(clew.is_autocast_enabled("cpu"))
        seen.append((clew.ones(2, 2) @ clew.ones(2, 2)).dtype)

    with clew.autocast("cpu"):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [False, clew.float32]


def test_inference_mode_and_no_grad():
    w = clew.nn.Linear(3, 2)
    for mode in (clew.no_grad, clew.inference_mode):
        with mode(), clew.autocast("cpu"):
            y = w(w.weight.new_ones(4, 3))
            assert y.dtype == clew.bfloat16 and not y.requires_grad


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint_runs_again_in_the_same_dtypes(use_reentrant):
    w = clew.ones(3, 3, requires_grad=True)
    x = clew.ones(2, 3, requires_grad=True)
    seen = []

    def f(x):
        y = x @ w
        seen.append(y.dtype)
        return y.sin()

    with clew.autocast("cpu"):
        y = checkpoint(f, x, use_reentrant=use_reentrant)
    y.float().sum().backward()
    assert seen == [clew.bfloat16, clew.bfloat16]
    assert not clew.is_autocast_enabled("cpu")
    assert w.grad.dtype == clew.float32


def test_transforms():
    w = clew.ones(3, 3)
    x = clew.ones(4, 3)
    with clew.autocast("cpu"):
        y = clew.vmap(lambda row: row @ w)(x)
        assert y.dtype == clew.bfloat16 and y.shape == (4, 3)
        g = clew.func.grad(lambda w: (x @ w).float().sum())(w)
        assert g.dtype == clew.float32 and g.tolist() == [[4.0] * 3] * 3
        j = clew.func.jacrev(lambda w: (x[:1] @ w).float().sum())(w)
        assert j.dtype == clew.float32
        per = clew.vmap(clew.func.grad(lambda w, r: (r @ w).float().sum()), (None, 0))(w, x)
        assert per.shape == (4, 3, 3) and per.dtype == clew.float32


def test_meta_tensors_are_left_alone():
    with clew.autocast("cpu"):
        a = clew.ones(2, 2, device="meta")
        assert (a @ a).dtype == clew.float32


class Plain(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t().to(grad.dtype), x.t().to(grad.dtype) @ grad


class Wrapped(clew.autograd.Function):
    seen: ClassVar[list[bool]] = []

    @staticmethod
    @clew.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    @clew.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        Wrapped.seen.append(clew.is_autocast_enabled("cpu"))
        return grad @ w.t(), x.t() @ grad


class InFloat32(clew.autograd.Function):
    @staticmethod
    @clew.amp.custom_fwd(device_type="cpu", cast_inputs=clew.float32)
    def forward(ctx, x, others):
        assert not clew.is_autocast_enabled("cpu") or x.dtype != clew.float32
        ctx.save_for_backward(x)
        return x @ others["w"]

    @staticmethod
    @clew.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        return grad, None


def test_custom_functions():
    x, w = clew.ones(2, 2, requires_grad=True), clew.ones(2, 2, requires_grad=True)
    with clew.autocast("cpu"):
        y = Plain.apply(x, w)
        assert y.dtype == clew.bfloat16
        y.float().sum().backward()  # inside: backward may use products of different dtypes
    assert x.grad.dtype == clew.float32
    x.grad = w.grad = None
    with clew.autocast("cpu"):
        y = Wrapped.apply(x, w)
    y.float().sum().backward()
    assert Wrapped.seen == [True]
    assert x.grad.dtype == w.grad.dtype == clew.float32
    with clew.autocast("cpu"):
        half = clew.ones(2, 2, dtype=clew.bfloat16, requires_grad=True)
        y = InFloat32.apply(half, {"w": clew.ones(2, 2, dtype=clew.bfloat16)})
        assert y.dtype == clew.float32
    y.sum().backward()
    assert half.grad.dtype == clew.bfloat16
    # Outside of a region nothing is cast.
    assert InFloat32.apply(half, {"w": half.detach()}).dtype == clew.bfloat16


def test_arguments():
    with pytest.raises(ValueError, match="device_type"):
        clew.autocast(3)
    with pytest.raises(RuntimeError, match="foo"):
        clew.autocast("foo")
    with pytest.raises(RuntimeError, match="meta"):
        clew.autocast("meta")
    with pytest.warns(UserWarning, match="not supported"):
        region = clew.autocast("cpu", dtype=clew.float32)
    with region:
        assert not clew.is_autocast_enabled("cpu")
    with pytest.raises(TypeError):
        clew.set_autocast_dtype("cpu", "bfloat16")
    with pytest.raises(ValueError, match="device_type"):
        clew.amp.custom_fwd(lambda: None, device_type=3)
    with pytest.raises(ValueError, match="device_type"):
        clew.amp.custom_bwd(lambda: None, device_type=None)


def test_settings_by_hand():
    assert clew.amp.is_autocast_available("cpu") and not clew.amp.is_autocast_available("meta")
    clew.set_autocast_enabled("cpu", True)
    clew.set_autocast_dtype("cpu", clew.float16)
    try:
        assert clew.is_autocast_enabled("cpu")
        assert (clew.ones(1, 1) @ clew.ones(1, 1)).dtype == clew.float16
    finally:
        clew.set_autocast_enabled("cpu", False)
        clew.set_autocast_dtype("cpu", clew.bfloat16)
    clew.set_autocast_cache_enabled(False)
    assert not clew.is_autocast_cache_enabled()
    clew.set_autocast_cache_enabled(True)
    assert clew.get_autocast_dtype("cuda") == clew.float16
    clew.set_autocast_dtype("cuda", clew.bfloat16)
    assert clew.get_autocast_dtype("cuda") == clew.bfloat16
    clew.set_autocast_dtype("cuda", clew.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert not clew.is_autocast_cpu_enabled()
        assert clew.get_autocast_cpu_dtype() == clew.bfloat16
        assert clew.get_autocast_gpu_dtype() == clew.float16
        clew.set_autocast_cpu_enabled(False)
        clew.set_autocast_cpu_dtype(clew.bfloat16)
        clew.set_autocast_gpu_dtype(clew.float16)
    with pytest.warns(DeprecationWarning, match="is_autocast_enabled"):
        clew.is_autocast_cpu_enabled()


def test_the_older_names():
    with pytest.warns(FutureWarning), pytest.warns(UserWarning, match="CUDA"):
        region = clew.cuda.amp.autocast()
    with region:
        assert not clew.is_autocast_enabled()
        assert (clew.ones(1, 1) @ clew.ones(1, 1)).dtype == clew.float32
    with pytest.warns(FutureWarning):
        region = clew.cpu.amp.autocast()
    with region:
        assert (clew.ones(1, 1) @ clew.ones(1, 1)).dtype == clew.bfloat16
    from clew.cuda.amp import GradScaler, autocast  # noqa: F401
    from clew.cuda.amp.grad_scaler import OptState  # noqa: F401

    with pytest.warns(FutureWarning), pytest.warns(UserWarning, match="CUDA"):
        assert not GradScaler().is_enabled()
    with pytest.warns(FutureWarning):
        assert clew.cpu.amp.GradScaler().is_enabled()


@pytest.mark.parametrize(
    "name",
    ["cat", "concat", "concatenate", "hstack", "vstack", "dstack", "column_stack", "row_stack"],
)
def test_whatever_joins_tensors_has_the_policy_of_cat(name):
    join, half, single = getattr(clew, name), clew.ones(2, 2).half(), clew.ones(2, 2)
    with clew.autocast("cpu", dtype=clew.bfloat16):
        assert join([half, half]).dtype == clew.bfloat16
        assert join([half.bfloat16(), half]).dtype == clew.bfloat16
        assert join([half, single]).dtype == clew.float32
        assert join([single, single]).dtype == clew.float32
