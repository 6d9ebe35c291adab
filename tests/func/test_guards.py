"""Batched tensors where only whole tensors make sense: refused, or right for every sample; never
the first sample in place of all.
"""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
import warnings
import weakref

import numpy as np
import pytest

import clew
from clew import nn
from clew.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    stack_module_state,
    vmap,
)


def rows():
    return clew.arange(6.0).view(3, 2)


READS = {
    "set_": lambda x: clew.zeros(2).set_(x),
    "untyped_storage": lambda x: x.untyped_storage(),
    "reinterpret": lambda x: x._reinterpret(clew.int32),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": pickle.dumps,
    "save": lambda x: clew.save(x, io.BytesIO()),
    "numpy": lambda x: x.detach().numpy(force=True),
    "asarray": lambda x: np.asarray(x.detach()),
    "dlpack": lambda x: x.__dlpack__(),
    "data_ptr": lambda x: x.data_ptr(),
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist(),
    "bool": lambda x: bool(x[0] > 0),
    "range": lambda x: range(x[0].long()),
    "list": lambda x: [1, 2, 3][x[0].long()],
    "slice": lambda x: x[x[0].long() :],
    "size": lambda x: clew.zeros(x[0].long()),
    "resize_": lambda x: x.resize_(5),
    "set data": lambda x: setattr(clew.zeros(2), "data", x),
    "grad": lambda x: setattr(clew.zeros(2), "grad", x),
    "retain_grad": lambda x: x.requires_grad_().mul(2).retain_grad(),
}


@pytest.mark.parametrize("name", READS)
def test_one_sample_is_never_taken_for_all(name):
    def f(x):
        READS[name](x)
        return x

    with pytest.raises(RuntimeError, match="vmap"):
        vmap(f)(rows())


def test_copies_of_a_sample():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in (clew.tensor, clew.as_tensor, lambda x: x.new_tensor(x), lambda x: x.data):
            assert vmap(f)(rows()).equal(rows())
        whole = vmap(lambda x: clew.tensor(x[0], dtype=clew.int64))(rows())
    assert whole.tolist() == [0, 2, 4]


@pytest.mark.parametrize("n", [3, 1])
@pytest.mark.parametrize("batched_too", [False, True])
def test_written_tensors_do_not_grow(n, batched_too):
    """An operand of more dims than one sample does not broadcast into it, whatever the batch."""
    x = rows()
    if batched_too:
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            vmap(lambda a, b: a.add_(b))(x, clew.ones(3, n, 2))
    else:
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            vmap(lambda a: a.add_(clew.ones(n, 2)))(x)
    assert x.equal(rows())


def test_index_put_writes_every_sample():
    x = rows()
    vmap(lambda a: a.index_put_((clew.tensor([0]),), clew.tensor([5.0])))(x)
    assert x.tolist() == [[5.0, 1.0], [5.0, 3.0], [5.0, 5.0]]
    at = clew.tensor([1, 0, 1])
    vmap(lambda a, i: a.index_put_((i.view(1),), a[:1] * 2, accumulate=True))(x, at)
    assert x.tolist() == [[5.0, 11.0], [15.0, 3.0], [5.0, 15.0]]
    vmap(lambda a, i: a.index_put_((i.view(1),), a[:1].clone()).zero_())(x, at)
    assert x.equal(clew.zeros(3, 2))
    shared = clew.zeros(2)
    with pytest.raises(RuntimeError, match="shared by all samples"):
        vmap(lambda i: shared.index_put_((i.view(1),), clew.ones(1)))(at)
    assert shared.tolist() == [0.0, 0.0]


def test_index_put_in_a_gradient():
    def f(a):
        b = a * 2
        b.index_put_((clew.tensor([0]),), a[1:] ** 2)
        return b.sum()

    assert vmap(grad(f))(rows()).tolist() == [[0.0, 4.0], [0.0, 8.0], [0.0, 12.0]]


def test_out_of_samples():
    x = rows()
    vmap(lambda a: clew.mul(a, 2, out=a))(x)
    assert x.equal(rows() * 2)
    vmap(lambda a: clew.ones(2, out=a))(x)
    assert x.equal(clew.ones(3, 2))
    with pytest.raises(RuntimeError, match="shared by all samples"):
        vmap(lambda a: clew.mul(a, 2, out=clew.zeros(2)))(x)


def test_requires_grad_inside_does_not_reach_the_argument():
    x = rows()
    assert vmap(lambda a: clew.autograd.grad((a.requires_grad_() ** 2).sum(), a)[0])(x).equal(2 * x)
    assert not x.requires_grad
    vmap(vmap(lambda a: a.requires_grad_() * 2), in_dims=1)(x)
    assert not x.requires_grad


def test_hooks_see_one_sample():
    seen = []

    def watched(a, k):
        b = a * 2
        b.register_hook(lambda g: (seen.append(g.shape), g * k)[1])
        return (b * b).sum()

    k = clew.tensor([1.0, 10.0, 100.0])
    got = vmap(grad(watched))(rows(), k)
    assert got.equal(8 * rows() * k[:, None]) and seen == [(2,)]
    seen.clear()
    rows_in = rows().requires_grad_()

    def through(a):
        b = a * 2
        b.register_hook(lambda g: (seen.append(g.shape), g * 3)[1])
        return b

    vmap(through)(rows_in).sum().backward()
    assert rows_in.grad.equal(clew.full((3, 2), 6.0)) and seen == [(2,)]
    seen.clear()
    jacobian = jacrev(lambda r: vmap(through)(r).sum(1))(rows())
    assert jacobian.equal(clew.eye(3)[:, :, None].expand(3, 3, 2) * 6) and seen == [(2,)]


def test_escaped_tensors_are_noticed():
    kept = []
    vmap(lambda a: (kept.append(a), a)[1])(rows())
    vmap(vmap(lambda i: (kept.append(i), i)[1]))(clew.zeros(1, 2, dtype=clew.int64))
    outside, index = kept
    for use in (
        lambda: vmap(lambda a: a + 1)(outside),
        lambda: vmap(lambda a: a + outside)(rows()),
        lambda: vmap(vmap(lambda a: a + outside))(rows()),
        lambda: rows()[index],
        lambda: rows()[:, index],
        lambda: vmap(lambda a: a[index])(rows()),
        lambda: rows().__setitem__(index, 1.0),
    ):
        with pytest.raises(RuntimeError, match="vmap"):
            use()


def test_another_thread_is_not_inside():
    errors = []

    def f(a):
        def work():
            for use in (lambda: a + 1, lambda: clew.ones(3)[a.long()]):
                try:
                    use()
                except RuntimeError as e:
                    errors.append(str(e))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return a

    vmap(f)(rows())
    assert len(errors) == 2 and all("vmap" in e for e in errors)


def test_running_statistics():
    x = clew.randn(4, 5, 2)
    shared = nn.BatchNorm1d(2)
    with pytest.raises(RuntimeError, match="running statistics"):
        vmap(shared)(x)
    assert shared.running_mean.equal(clew.zeros(2))
    models = [nn.BatchNorm1d(2) for _ in range(4)]
    params, buffers = stack_module_state(models)
    base = models[0]
    got = vmap(lambda p, b, a: functional_call(base, (p, b), (a,)))(params, buffers, x)
    for i, m in enumerate(models):
        want = m(x[i]) if i else nn.BatchNorm1d(2)(x[i])
        assert got[i].allclose(want, atol=1e-6)
        if i:
            assert buffers["running_mean"][i].allclose(m.running_mean)
            assert buffers["running_var"][i].allclose(m.running_var)


def test_function_contexts_keep_samples():
    """What a Function keeps on its context is the same batched tensor in backward."""

    class Scaled(clew.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(a, b):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    k = clew.tensor([1.0, 10.0, 100.0])
    got = vmap(grad(lambda a, b: Scaled.apply(a, b).sum()))(rows(), k)
    assert got.equal(k[:, None].expand(3, 2))


@pytest.mark.parametrize(
    "write",
    [
        lambda a, b: a.clamp_(min=b),
        lambda a, b: a.cumprod_(0),
        lambda a, b: a.addmm_(a, b),
        lambda a, b: a.masked_fill_(b > 0.5, 2.0),
        lambda a, b: a.addcmul_(a, b),
        lambda a, b: a[0].copy_(b[0] * 3),
        lambda a, b: a.tril_().mul_(a),
        lambda a, b: a.index_add_(0, clew.tensor([1, 0]), a.clone()),
    ],
)
def test_gradients_of_writes(write):
    """Backward finds the values from before the write, for every sample."""
    gen = clew.Generator().manual_seed(0)
    x, y = clew.rand(3, 2, 2, generator=gen).double(), clew.rand(3, 2, 2, generator=gen).double()

    def f(a, b):
        c = a.sin()
        write(c, b)
        return (c * c).sum()

    got = vmap(grad(f, argnums=(0, 1)))(x, y)
    through = grad(lambda a, b: vmap(f)(a, b).sum(), argnums=(0, 1))(x, y)
    for i in range(3):
        want = grad(f, argnums=(0, 1))(x[i], y[i])
        for g, t, w in zip(got, through, want):
            assert g[i].allclose(w, atol=1e-12) and t[i].allclose(w, atol=1e-12)


def test_jacobians_are_of_real_functions():
    z = clew.tensor([1 + 2j, 2.0])
    for jacobian in (jacrev, jacfwd, hessian):
        with pytest.raises(RuntimeError, match="inputs to be real"):
            jacobian(lambda x: x * x)(z)
        with pytest.raises(RuntimeError, match="outputs to be real"):
            jacobian(lambda x: x * (1 + 1j))(clew.ones(2))


@pytest.mark.parametrize("inside", [False, True])
def test_hooks_that_hold_their_tensor_are_collected(inside):
    """tensor -> node -> hook -> tensor is a cycle; Python's collector sees it."""
    held = []

    def f(a):
        b = a * 2
        b.register_hook(lambda g: g * b.detach())
        held.append(weakref.ref(b))
        return b.sum()

    x = rows()
    got = vmap(grad(f))(x) if inside else grad(f)(x)
    assert got.equal(x * 4)
    gc.collect()
    assert held[0]() is None


def test_one_gradient_for_what_all_samples_share():
    """autograd.grad inside vmap knows one gradient of a shared tensor; func.grad gives each."""
    w = clew.ones(3, requires_grad=True)
    x = clew.arange(6.0).reshape(2, 3)
    with pytest.raises(RuntimeError, match=r"func\.grad"):
        clew.func.vmap(lambda v: clew.autograd.grad((v * w).sum(), w)[0])(x)
    each = clew.func.vmap(clew.func.grad(lambda w, v: (v * w).sum()), in_dims=(None, 0))(w, x)
    assert each.equal(x)
