"""What holds for every module: derivatives, state, copies, conversions, text."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from module_cases import CASES, WITHOUT, D

import clew
from clew import nn

pytestmark = pytest.mark.filterwarnings("ignore")


def tensors(value):
    """All tensors in a result, in order."""
    if isinstance(value, clew.Tensor):
        return [value]
    if isinstance(value, tuple | list):
        return [t for v in value for t in tensors(v)]
    return []


def make(name):
    build, inputs = CASES[name]
    clew.manual_seed(7)
    module = build().double()
    return module, inputs()


def same(a, b):
    a, b = tensors(a), tensors(b)
    assert len(a) == len(b) and a
    for x, y in zip(a, b, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())


def test_each_has_a_case():
    values = {name: getattr(nn, name) for name in dir(nn)}
    public = {n for n, v in values.items() if isinstance(v, type) and issubclass(v, nn.Module)}
    having = {name.partition("-")[0] for name in CASES}
    assert not public - having - WITHOUT.keys(), "write a case, or a reason in WITHOUT"
    assert not having & WITHOUT.keys() and having | WITHOUT.keys() == public


@pytest.mark.parametrize("name", CASES)
def test_case_is_of_the_class(name):
    assert isinstance(make(name)[0], getattr(nn, name.partition("-")[0]))


@pytest.mark.parametrize("name", CASES)
def test_derivative_of_inputs_and_parameters(name):
    module, inputs = make(name)
    params = {k: p.detach().clone() for k, p in module.named_parameters()}
    flat = tensors(inputs)
    moving = [t for t in flat if t.is_floating_point()] + list(params.values())
    if "Loss" in name or "CosineEmb" in name:  # targets are given, not learned
        moving = [flat[0], *params.values()]
    moving = [t.detach().clone().requires_grad_() for t in moving]
    weights = None

    def run(*values):
        nonlocal weights
        values = list(values)

        def put(value):
            if isinstance(value, tuple):
                return tuple(put(v) for v in value)
            floating = isinstance(value, clew.Tensor) and value.is_floating_point()
            first_only = ("Loss" in name) and value is not inputs[0]
            return values.pop(0) if floating and not first_only else value

        args = tuple(put(v) for v in inputs)
        own = dict(zip(params, values, strict=True))
        out = nn.utils.stateless.functional_call(copy.deepcopy(module), own, args)
        outs = [t for t in tensors(out) if t.requires_grad]
        if weights is None:
            weights = [clew.randn(t.shape, dtype=D) for t in outs]
        return sum((t * w).sum() for t, w in zip(outs, weights, strict=True))

    # One random direction: the directional derivative by autograd and by a central difference.
    total = run(*moving)
    grads = clew.autograd.grad(total, moving, allow_unused=True)
    directions = [clew.randn(t.shape, dtype=D) for t in moving]
    by_graph = sum(
        (g * d).sum().item() for g, d in zip(grads, directions, strict=True) if g is not None
    )
    step = 1e-6
    with clew.no_grad():
        up = run_plain(run, moving, directions, step)
        down = run_plain(run, moving, directions, -step)
    by_difference = (up - down) / (2 * step)
    assert by_graph == pytest.approx(by_difference, rel=2e-5, abs=2e-6)
    assert any(g is not None and bool((g != 0).any()) for g in grads)


def run_plain(run, moving, directions, step):
    moved = [
        (t.detach() + step * d).requires_grad_() for t, d in zip(moving, directions, strict=True)
    ]
    with clew.enable_grad():
        return run(*moved).item()


@pytest.mark.parametrize("name", CASES)
def test_state_dict_carries_everything(name):
    module, inputs = make(name)
    module.eval()
    other = CASES[name][0]().double().eval()
    state = module.state_dict()
    assert list(state) == list(other.state_dict())
    found = other.load_state_dict(state)
    assert not found.missing_keys and not found.unexpected_keys
    same(module(*inputs), other(*inputs))
    for value in state.values():
        assert not value.requires_grad


@pytest.mark.parametrize("name", CASES)
def test_deepcopy_and_pickle(name):
    module, inputs = make(name)
    module.eval()
    copied = copy.deepcopy(module)
    loaded = pickle.load(io.BytesIO(pickle.dumps(module)))
    want = module(*inputs)
    same(want, copied(*inputs))
    same(want, loaded(*inputs))
    assert repr(copied) == repr(loaded) == repr(module)
    for a, b in zip(module.parameters(), copied.parameters(), strict=True):
        assert a is not b and isinstance(b, nn.Parameter) and b.requires_grad == a.requires_grad
        before = b.detach().clone()
        with clew.no_grad():
            a.add_(1)
        np.testing.assert_array_equal(b.detach().numpy(), before.numpy())


@pytest.mark.parametrize("name", CASES)
def test_float32_agrees_with_float64(name):
    module, inputs = make(name)
    want = tensors(module(*inputs))

    def single(v):
        if isinstance(v, tuple):
            return tuple(single(x) for x in v)
        return v.float() if isinstance(v, clew.Tensor) and v.is_floating_point() else v

    module = make(name)[0].float()
    assert all(p.dtype == clew.float32 for p in module.parameters())
    got = tensors(module(*(single(v) for v in inputs)))
    for x, y in zip(want, got, strict=True):
        if x.is_floating_point():
            assert y.dtype == clew.float32
            np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_modes_and_text(name):
    module, _ = make(name)
    assert module.training and not module.eval().training
    assert all(not m.training for m in module.modules())
    assert all(m.training for m in module.train().modules())
    text = repr(module)
    assert text.startswith(type(module).__name__ + "(") and text.endswith(")")
    module.requires_grad_(False)
    assert not any(p.requires_grad for p in module.parameters())


@pytest.mark.parametrize("name", CASES)
def test_to_the_meta_device_and_back(name):
    build, _ = CASES[name]
    module = build()
    shapes = [(k, tuple(t.shape), t.dtype) for k, t in module.state_dict().items()]
    moved = module.to("meta")
    assert moved is module and all(t.is_meta for t in module.state_dict().values())
    back = module.to_empty(device="cpu")
    assert [(k, tuple(t.shape), t.dtype) for k, t in back.state_dict().items()] == shapes
    assert not any(t.is_meta for t in back.state_dict().values())


def test_bases_that_programs_ask_for():
    """`isinstance(module, torch.nn.modules.padding._ReflectionPadNd)` and the like."""
    padding, pooling = nn.modules.padding, nn.modules.pooling
    for n in (1, 2, 3):
        assert issubclass(getattr(nn, f"ZeroPad{n}d"), getattr(nn, f"ConstantPad{n}d"))
        assert issubclass(getattr(nn, f"AvgPool{n}d"), pooling._AvgPoolNd)
        for kind in ("Constant", "Reflection", "Replication", "Circular"):
            kinds = [k for k in vars(padding) if k.endswith("PadNd") and k != "_PadNd"]
            module = getattr(nn, f"{kind}Pad{n}d")
            bases = {k for k in kinds if issubclass(module, getattr(padding, k))}
            assert bases == {f"_{kind}PadNd"}
    zero = nn.ZeroPad2d((1, 0, 2, 0))
    assert zero.value == 0 and repr(zero) == "ZeroPad2d((1, 0, 2, 0))"
    assert repr(nn.AvgPool1d(2)) == "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"
