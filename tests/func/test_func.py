"""The function transforms: values against loops and formulas, composition, errors."""

from __future__ import annotations

import collections

import pytest
from near import close, normal

import clew
from clew import nn
from clew.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

# ---- vmap: dims, structures ----------------------------------------------------------------------


@pytest.mark.parametrize("in_dim", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out_dim", [0, 1, -1])
def test_mapped_dims(in_dim, out_dim):
    x = normal(3, 4, 5)
    got = vmap(lambda t: t * 2 + t.sum(), in_dims=in_dim, out_dims=out_dim)(x)
    want = clew.stack([t * 2 + t.sum() for t in x.unbind(in_dim)], dim=out_dim)
    close(got, want)


def test_structures_of_arguments_and_results():
    Pair = collections.namedtuple("Pair", "first second")
    a, b = normal(3, 2), normal(2, 3, seed=1)

    def f(pair, scale, table):
        return {"sum": pair.first + pair.second, "rest": [table["x"] * scale, (pair.first,)]}

    got = vmap(f, in_dims=(Pair(0, 1), None, {"x": 0}), out_dims={"sum": 1, "rest": 0})(
        Pair(a, b), 3.0, {"x": a}
    )
    close(got["sum"], (a + b.T).T)
    close(got["rest"][0], a * 3)
    close(got["rest"][1][0], a)


def test_keyword_arguments_are_shared():
    x, y = normal(3, 2), normal(2)
    close(vmap(lambda x, y: x * y)(x, y=y), x * y)


def test_unmapped_results_are_expanded_or_handed_out():
    x = normal(3, 2)
    shared = normal(2, seed=3)
    close(vmap(lambda t: shared)(x), shared.expand(3, 2))
    _, number = vmap(lambda t: (t, shared), out_dims=(0, None))(x)
    close(number, shared)
    with pytest.raises(ValueError, match="can not return a batched tensor"):
        vmap(lambda t: t, out_dims=None)(x)


def test_nested():
    a, b = normal(3), normal(4, seed=1)
    close(vmap(vmap(lambda x, y: x * y, (None, 0)), (0, None))(a, b), a[:, None] * b)
    x = normal(2, 3, 4)
    close(
        vmap(vmap(lambda t: t.softmax(0), in_dims=1, out_dims=1), in_dims=2, out_dims=2)(x),
        x.softmax(0),
    )
    close(vmap(vmap(vmap(clew.sin)))(x), x.sin())


def test_three_levels_with_products_of_different_levels():
    a, b, c = normal(2, 5), normal(3, 5, seed=1), normal(4, 5, seed=2)
    f = vmap(
        vmap(vmap(lambda x, y, z: (x * y * z).sum(), (None, None, 0)), (None, 0, None)),
        (0, None, None),
    )
    close(f(a, b, c), clew.einsum("ai,bi,ci->abc", a, b, c))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_chunks(chunk):
    x = normal(7, 3)
    close(vmap(lambda t: t.cumsum(0), chunk_size=chunk, out_dims=1)(x), x.cumsum(1).T)


def test_no_samples():
    x = clew.zeros(0, 3)
    got = vmap(lambda t: (t.sum(), t * 2, clew.linalg.vector_norm(t), t.median()))(x)
    assert [g.shape for g in got] == [(0,), (0, 3), (0,), (0,)]


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: vmap(clew.sin, in_dims=2)(x), ValueError, "dimensionality 2"),
        (lambda x: vmap(clew.sin, in_dims=(0, 0))(x), ValueError, "not compatible"),
        (lambda x: vmap(clew.sin, in_dims="0")(x), ValueError, "expected `in_dims`"),
        (lambda x: vmap(clew.sin)(), ValueError, "got no inputs"),
        (lambda x: vmap(clew.add)(x, 2.0), ValueError, "non-Tensor"),
        (lambda x: vmap(clew.add, in_dims=(0, 1))(x, x), ValueError, "same size"),
        (lambda x: vmap(clew.sin, in_dims=(None,))(x), ValueError, "at least one"),
        (lambda x: vmap(lambda t: "a")(x), ValueError, "must only return Tensors"),
        (lambda x: vmap(lambda t: t, out_dims=3)(x), IndexError, "out of range"),
        (lambda x: vmap(clew.sin, randomness="x"), RuntimeError, "Only allowed values"),
        (lambda x: vmap(clew.sin, chunk_size=0), ValueError, "chunk_size"),
        (lambda x: vmap(lambda t: t if t.sum() > 0 else -t)(x), RuntimeError, "where"),
        (lambda x: vmap(lambda t: t.sum().item())(x), RuntimeError, "differ from sample"),
        (lambda x: vmap(lambda t: t.numpy())(x), RuntimeError, "numpy"),
        (lambda x: vmap(lambda t: t.tolist())(x), RuntimeError, "tolist"),
        (lambda x: vmap(lambda t: t.data_ptr())(x), RuntimeError, "data_ptr"),
        (lambda x: vmap(lambda t: t[t > 0])(x), RuntimeError, "shape of a result depends"),
        (lambda x: vmap(lambda t: t.mm(t))(x), RuntimeError, "2"),
        (lambda x: vmap(lambda t: t.sum(1))(x), IndexError, "dim"),
        (lambda x: vmap(lambda t: t.requires_grad_().sum().backward())(x), RuntimeError, "func"),
    ],
)
def test_errors(call, error, match):
    x = clew.tensor([[1.0, -2.0, 3.0], [-4.0, -5.0, 6.0]])
    with pytest.raises(error, match=match):
        call(x)
    assert clew._C._vmap_depth() == 0


def test_tensors_that_escape():
    kept = []
    vmap(lambda t: kept.append(t) or t)(normal(3, 2))
    with pytest.raises(RuntimeError, match="after that vmap was over"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="after that vmap was over"):
        vmap(lambda t: t + kept[0])(normal(3, 2))
    for read in (lambda t: t.clone(), lambda t: t[0], lambda t: t.add_(1), lambda t: t.item()):
        with pytest.raises(RuntimeError, match="vmap"):
            read(kept[0])
    assert "vmap that is over" in repr(kept[0])
    vmap(lambda t: kept.append(repr(t)) or t)(normal(3, 2))
    assert kept[-1].startswith("BatchedTensor(levels=[0], shape=[2], value=\ntensor([[")


# ---- vmap: writes, indices, random numbers -------------------------------------------------------


def test_writes_in_place():
    x = normal(4, 3)

    def f(t):
        y = clew.zeros_like(t)
        y[1:] = t[:2]
        y[0] += t.sum()
        y.mul_(2)
        z = t.new_ones(2, 3)
        z[0] = y
        z.t_()
        return z.relu_()

    close(vmap(f)(x), clew.stack([f(t) for t in x]))
    with pytest.raises(RuntimeError, match="inplace"):
        vmap(lambda t: clew.zeros(3).add_(t))(x)
    shared = clew.zeros(3, dtype=clew.float64)
    vmap(lambda t: shared.add_(1))(x)
    close(shared, clew.ones(3, dtype=clew.float64))


def test_writes_in_place_have_gradients():
    x = normal(4, 3).requires_grad_()

    def f(t):
        y = t * 2
        y[0] = t[1] ** 2
        y[1:].mul_(t[0])
        return y.prod()

    (got,) = clew.autograd.grad(vmap(f)(x).sum(), x)
    want = [
        clew.autograd.grad(f(t), t)[0] for t in x.detach().unbind() for t in [t.requires_grad_()]
    ]
    close(got, clew.stack(want))
    close(vmap(grad(f))(x.detach()), clew.stack(want))


def test_the_mapped_tensor_itself_can_be_written():
    x = normal(3, 2)
    before = x.clone()
    vmap(lambda t: t.add_(1))(x)
    close(x, before + 1)


def test_indices():
    x, i = normal(4, 5), clew.tensor([3, 0, 2, 1])
    close(vmap(lambda t, k: t[k])(x, i), x[clew.arange(4), i])
    rows = clew.tensor([[0, 1], [2, 2], [4, 0], [1, 3]])
    close(vmap(lambda t, k: t[k] * 2)(x, rows), x.gather(1, rows) * 2)
    close(vmap(lambda k: x[k])(rows[:, 1] % 4), x[rows[:, 1] % 4])
    close(vmap(lambda t: t[[0, 2]])(x), x[:, [0, 2]])
    close(vmap(lambda t: t[None, ..., ::2])(x), x[:, None, ::2])

    def write(t, k):
        y = t.clone()
        y[k] = -1
        return y

    close(vmap(write)(x, rows), clew.stack([write(t, k) for t, k in zip(x, rows)]))
    y = x.clone().requires_grad_()
    vmap(lambda t, k: t[k])(y, i).sum().backward()
    assert y.grad.sum() == 4 and y.grad[0, 3] == 1


def test_random_numbers():
    x = clew.zeros(5, 3)
    for draw in (
        lambda t: clew.rand(3),
        lambda t: clew.randn_like(t),
        lambda t: clew.nn.functional.dropout(t + 1),
        lambda t: t.clone().normal_(),
        lambda t: clew.randperm(50),
        lambda t: clew.randint(0, 10**6, (3,)),
        lambda t: clew.bernoulli(t + 0.5),
    ):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            vmap(draw)(x)
        clew.manual_seed(1)
        one = draw(x[0])
        clew.manual_seed(1)
        same = vmap(draw, randomness="same")(x)
        for row in same:
            assert row.equal(one)
        apart = vmap(draw, randomness="different")(x)
        assert apart.shape == same.shape
        assert len({tuple(r.tolist()) for r in apart}) > 1
    clew.manual_seed(3)
    a = vmap(lambda t: clew.rand(2), randomness="same", chunk_size=2)(x)
    assert a.equal(a[:1].expand(5, 2))


# ---- gradients -----------------------------------------------------------------------------------


def test_grad_arguments():
    x, y = normal(3), normal(3, seed=1)
    f = lambda x, y: (x * y**2).sum()
    close(grad(f)(x, y), y**2)
    close(grad(f, argnums=1)(x, y), 2 * x * y)
    both = grad(f, argnums=(1, 0))(x, y)
    assert isinstance(both, tuple)
    close(both[0], 2 * x * y)
    close(both[1], y**2)
    table = grad(lambda p: (p["a"] * p["b"][0]).sum())({"a": x, "b": [y]})
    close(table["a"], y)
    close(table["b"][0], x)
    g, (value, extra) = grad_and_value(lambda t: ((t**2).sum(), {"t": t * 3}), has_aux=True)(x)
    close(g, 2 * x)
    close(value, (x**2).sum())
    close(extra["t"], 3 * x)
    assert not extra["t"].requires_grad and not value.requires_grad and not g.requires_grad
    close(grad(lambda t: y.sum())(x), clew.zeros(3, dtype=clew.float64))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: grad(lambda t: t)(x), RuntimeError, "scalar"),
        (lambda x: grad(lambda t: 3)(x), RuntimeError, "return a tensor"),
        (lambda x: grad(lambda t: t.sum(), argnums=1)(x), RuntimeError, "argnum=1"),
        (lambda x: grad(lambda t: t.sum(), argnums=(0, 0))(x, x), RuntimeError, "unique"),
        (lambda x: grad(lambda t: t.sum())(x.long()), RuntimeError, "floating"),
        (lambda x: grad(lambda t: t.sum())(3.0), ValueError, "unsupported"),
        (lambda x: grad(lambda t: t.sum(), has_aux=True)(x), RuntimeError, "has_aux"),
        (lambda x: vjp(clew.sin, x)[1](x[:2]), RuntimeError, "shape"),
        (lambda x: jvp(clew.sin, x, (x,)), RuntimeError, "tuples"),
        (lambda x: jvp(clew.sin, (x,), (x[:2],)), RuntimeError, "shape"),
        (lambda x: jvp(lambda t: x, (x,), (x,), strict=True), RuntimeError, "independent"),
    ],
)
def test_grad_errors(call, error, match):
    with pytest.raises(error, match=match):
        call(normal(3))


def test_orders_of_derivatives():
    x = clew.tensor(1.5, dtype=clew.float64)
    f = clew.sin
    for k, want in enumerate([x.cos(), -x.sin(), -x.cos(), x.sin(), x.cos()]):
        g = f
        for _ in range(k + 1):
            g = grad(g)
        close(g(x), want)
        forward = f
        for _ in range(k + 1):
            forward = (lambda h: lambda t: jvp(h, (t,), (clew.ones_like(t),))[1])(forward)
        close(forward(x), want)


def test_perturbations_are_not_confused():
    # d/dx (x * d/dy (x + y)) = 1
    x = clew.tensor(2.0)
    for inner in (
        lambda x: grad(lambda y: x + y)(clew.tensor(3.0)),
        lambda x: jvp(lambda y: x + y, (clew.tensor(3.0),), (clew.tensor(1.0),))[1],
    ):
        assert grad(lambda x, d=inner: x * d(x))(x) == 1
        assert jvp(lambda x, d=inner: x * d(x), (x,), (clew.tensor(1.0),))[1] == 1


def test_with_ordinary_autograd_outside():
    w = normal(3).requires_grad_()
    x = normal(3, seed=1)
    g = grad(lambda t: (w * t**3).sum())(x)
    assert g.requires_grad
    close(clew.autograd.grad(g.sum(), w)[0], 3 * x**2)
    y, pull = vjp(lambda t: w * t, x)
    (back,) = pull(clew.ones_like(x))
    close(clew.autograd.grad(back.sum() + y.sum(), w)[0], 1 + x)
    v = normal(3, seed=2).requires_grad_()
    _, tangent = jvp(lambda t: t**2, (x,), (v,))
    close(clew.autograd.grad(tangent.sum(), v)[0], 2 * x)
    with clew.no_grad():
        assert not grad(lambda t: (w * t**3).sum())(x).requires_grad
    x.requires_grad_()
    close(clew.autograd.grad(grad(lambda t: (t**3).sum())(x).sum(), x)[0], 6 * x)


def test_vjp_and_jvp_with_structures():
    x, y = normal(3), normal(2, seed=1)
    f = lambda x, p: {"a": x.sum() * p["y"], "b": (x**2,)}
    out, pull = vjp(f, x, {"y": y})
    gx, gp = pull({"a": clew.ones(2, dtype=clew.float64), "b": (clew.ones(3, dtype=clew.float64),)})
    close(gx, y.sum() + 2 * x)
    close(gp["y"], x.sum().expand(2))
    out2, tangent = jvp(f, (x, {"y": y}), (clew.ones_like(x), {"y": clew.zeros_like(y)}))
    close(out2["a"], out["a"])
    close(tangent["a"], 3 * y)
    close(tangent["b"][0], 2 * x)


@pytest.mark.parametrize(
    "run",
    [
        lambda x: jvp(clew.sin, (x,), (x.double(),)),
        lambda x: jvp(clew.sin, (x.double(),), (x,)),
        lambda x: linearize(clew.sin, x),
        lambda x: jacfwd(clew.sin)(x),
        lambda x: hessian(clew.sum)(x),
    ],
)
def test_forward_mode_refuses_integers(run):
    with pytest.raises(ValueError, match="floating point"):
        run(clew.arange(3))


def _noisy(x):
    return x * clew.randn(3)


@pytest.mark.parametrize("transform", [jacfwd, hessian])
def test_a_jacobian_of_a_function_with_random_numbers_raises(transform):
    with pytest.raises(RuntimeError, match="randomness"):
        transform(lambda x: _noisy(x).pow(2).sum())(clew.ones(3))


def test_a_random_jacobian_draws_once_or_for_every_column():
    clew.manual_seed(0)
    once = clew.randn(3)
    clew.manual_seed(0)
    assert clew.equal(jacfwd(_noisy, randomness="same")(clew.ones(3)), clew.diag(once))
    clew.manual_seed(0)
    every = clew.randn(3, 3)
    clew.manual_seed(0)
    found, aux = jacfwd(lambda x: (_noisy(x), x.sum()), has_aux=True, randomness="different")(
        clew.ones(3)
    )
    assert clew.equal(found, clew.diag(every.diag())) and aux.item() == 3
    clew.manual_seed(0)
    by_name = jacfwd(
        lambda x, y: {"z": y * _noisy(x)}, argnums=(0, 1), randomness="different", chunk_size=2
    )(clew.ones(3), clew.zeros(3))
    assert clew.equal(by_name["z"][0], clew.zeros(3, 3))
    assert by_name["z"][1].count_nonzero() == 3
    with pytest.raises(RuntimeError, match="randomness"):
        jacfwd(clew.sin, randomness="now")(clew.ones(3))


@pytest.mark.parametrize("transform", [jacrev, jacfwd])
def test_jacobians(transform):
    x, y = normal(3), normal(2, 2, seed=1)
    f = lambda x, y: (clew.outer(x, y.sum(0)), {"s": (y @ y).sum() * x})
    (dxx, other) = transform(f, argnums=(0, 1))(x, y)
    assert dxx[0].shape == (3, 2, 3) and dxx[1].shape == (3, 2, 2, 2)
    assert other["s"][0].shape == (3, 3) and other["s"][1].shape == (3, 2, 2)
    want = clew.autograd.functional.jacobian(lambda x, y: (f(x, y)[0], f(x, y)[1]["s"]), (x, y))
    for got, expect in zip((*dxx, *other["s"]), (*want[0], *want[1])):
        close(got, expect)
    one = transform(lambda x: (x * 2, x.sum()), has_aux=True)(x)
    close(one[0], 2 * clew.eye(3, dtype=clew.float64))
    close(one[1], x.sum())
    for chunk in (1, 2, 5):
        close(
            transform(lambda x: x.outer(x), chunk_size=chunk)(x), transform(lambda x: x.outer(x))(x)
        )
    assert transform(lambda x: x * 2)(clew.zeros(0)).shape == (0, 0)


def test_hessian_and_vmap():
    x = normal(5, 3)
    f = lambda t: (t**4).sum() + t.prod()
    H = vmap(hessian(f))(x)
    for h, t in zip(H, x):
        close(h, clew.autograd.functional.hessian(f, t))
    close(vmap(jacrev(jacfwd(f)))(x), H)
    close(vmap(jacfwd(jacrev(f)))(x), H)
    close(vmap(jacrev(jacrev(f)))(x), H)


def test_linearize():
    x = normal(3)
    _, push = linearize(lambda t: t.sin() * t.sum(), x)
    for seed in (1, 2):
        v = normal(3, seed=seed)
        close(push(v), jvp(lambda t: t.sin() * t.sum(), (x,), (v,))[1])
    V = normal(4, 3, seed=5)
    close(vmap(push)(V), clew.stack([push(v) for v in V]))


def test_functionalize():
    close(functionalize(lambda t: t.clone().add_(1))(normal(3)), normal(3) + 1)
    with pytest.raises(RuntimeError, match="remove"):
        functionalize(clew.sin, remove="all")


# ---- modules -------------------------------------------------------------------------------------


def model():
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4)
    ).double()


def test_gradients_of_samples():
    clew.manual_seed(0)
    net = model()
    x, y = normal(6, 1, 8, 8), clew.tensor([0, 1, 2, 3, 0, 1])
    parameters = {n: p.detach() for n, p in net.named_parameters()}

    def loss(parameters, x, y):
        out = functional_call(net, parameters, (x[None],))
        return nn.functional.cross_entropy(out, y[None])

    got = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for i in range(6):
        net.zero_grad()
        nn.functional.cross_entropy(net(x[i : i + 1]), y[i : i + 1]).backward()
        for name, p in net.named_parameters():
            close(got[name][i], p.grad)


def test_ensembles():
    nets = [model() for _ in range(4)]
    x = normal(5, 1, 8, 8)
    parameters, buffers = stack_module_state(nets)
    out = vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(parameters, buffers)
    close(out, clew.stack([n(x) for n in nets]))
    out.sum().backward()
    nets[2](x).sum().backward()
    close(parameters["0.weight"].grad[2], nets[2][0].weight.grad)
    with pytest.raises(RuntimeError, match="same training"):
        stack_module_state([nets[0].eval(), nets[1].train()])
    with pytest.raises(RuntimeError, match="at least one"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state(
            [nn.Linear(1, 1), nn.Linear(1, 1).double().to_empty(device="cpu"), nn.ReLU()]
        )


def test_recurrent_and_attention_under_vmap():
    clew.manual_seed(0)
    lstm = nn.LSTM(3, 4, batch_first=True).double()
    x = normal(5, 2, 6, 3)
    close(vmap(lambda t: lstm(t)[0])(x), clew.stack([lstm(t)[0] for t in x]))
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).double()
    y = normal(3, 2, 5, 4)
    close(vmap(layer)(y), clew.stack([layer(t) for t in y]))
    parameters = dict(layer.named_parameters())
    f = lambda p, t: functional_call(layer, p, (t,)).pow(2).sum()
    got = vmap(grad(f), in_dims=(None, 0))(parameters, y)
    one = grad(f)(parameters, y[1])
    for name in one:
        close(got[name][1], one[name])


# ---- custom functions ----------------------------------------------------------------------------


class Cube(clew.autograd.Function):
    @staticmethod
    def forward(x, w):
        return x**3 * w, x * 0

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        x, w = ctx.saved_tensors
        return 3 * x**2 * w * g, (x**3 * g) if ctx.needs_input_grad[1] else None


def test_custom_functions_inside_vmap():
    x, w = normal(4, 3), normal(3, seed=1)
    close(vmap(lambda x: Cube.apply(x, w)[0])(x), x**3 * w)
    close(vmap(grad(lambda x: Cube.apply(x, w)[0].sum()))(x), 3 * x**2 * w)
    f = lambda w, x: Cube.apply(x, w)[0].sum()
    close(vmap(grad(f), in_dims=(None, 0))(w, x), x**3)
    close(vmap(hessian(lambda x: Cube.apply(x, w)[0].sum()))(x), clew.diag_embed(6 * x * w))
    leaf = w.clone().requires_grad_()
    vmap(lambda x: Cube.apply(x, leaf)[0])(x).sum().backward()
    close(leaf.grad, (x**3).sum(0))
    pairs = vmap(vmap(lambda x, w: Cube.apply(x, w)[0], (0, None)), (None, 0))(x, x[:2])
    close(pairs, x**3 * x[:2, None])


def test_a_functions_own_vmap():
    seen = []

    class Double(clew.autograd.Function):
        @staticmethod
        def forward(x, k):
            return x * 2 * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.k, None

        @staticmethod
        def vmap(info, in_dims, x, k):
            seen.append((info.batch_size, info.randomness, in_dims, x.shape))
            return Double.apply(x, k), 0

    x = normal(3, 4)
    close(vmap(vmap(lambda t: Double.apply(t, 5)))(x), x * 10)
    assert seen == [(4, "error", (0, None), (4,)), (3, "error", (0, None), (3, 4))]
    close(vmap(grad(lambda t: Double.apply(t, 5).sum()))(x), clew.full_like(x, 10))


# ---- autograd's own Jacobians and batches of gradients -------------------------------------------


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_vectorized_jacobians(strategy):
    from clew.autograd.functional import hessian as old_hessian
    from clew.autograd.functional import jacobian

    x, y = normal(3), normal(2, seed=1)
    f = lambda x, y: (clew.outer(x, y), (x * x.sum()).cos())
    slow = jacobian(f, (x, y), strategy=strategy)
    fast = jacobian(f, (x, y), strategy=strategy, vectorize=True)
    for row, other in zip(slow, fast):
        for a, b in zip(row, other):
            assert not b.requires_grad
            close(a, b)
    close(jacobian(clew.sin, x, vectorize=True, strategy=strategy), clew.diag(x.cos()))
    g = lambda x: (x**3).sum() * x[0]
    close(old_hessian(g, x, vectorize=True), old_hessian(g, x))


def test_vectorized_jacobian_with_graph():
    from clew.autograd.functional import jacobian

    x = normal(3).requires_grad_()
    table = jacobian(lambda t: t**3, x, create_graph=True, vectorize=True)
    close(clew.autograd.grad(table.sum(), x)[0], 6 * x)
    with pytest.raises(RuntimeError, match="strict"):
        jacobian(clew.sin, x, strict=True, vectorize=True)


def test_batches_of_gradients():
    x, y = normal(3).requires_grad_(), normal(2, seed=1).requires_grad_()
    out = x.sin() * x.sum()
    V = normal(4, 3, seed=2)
    (got,) = clew.autograd.grad(out, x, V, is_grads_batched=True, retain_graph=True)
    want = [clew.autograd.grad(out, x, v, retain_graph=True)[0] for v in V]
    close(got, clew.stack(want))
    pair = clew.autograd.grad(out, (x, y), V, is_grads_batched=True, allow_unused=True)
    close(pair[0], got)
    assert pair[1] is None


def test_jacobian_of_writes_at_places():
    """scatter's gradient writes a number, which has no samples, into batched gradients."""
    at = clew.tensor([2, 0])

    def f(x, s):
        return x.scatter(0, at, s) * x

    x, s = normal(3), normal(2, seed=1)
    want_x = clew.diag(x.scatter(0, at, s)) + clew.diag(x * clew.tensor([0.0, 1.0, 0.0]))
    want_s = clew.zeros(3, 2).double()
    want_s[2, 0], want_s[0, 1] = x[2], x[0]
    for jacobian in (jacrev, jacfwd):
        got_x, got_s = jacobian(f, argnums=(0, 1))(x, s)
        close(got_x, want_x)
        close(got_s, want_s)
    got = vmap(lambda a, i: a.scatter(0, i, 1.5))(normal(4, 3).float(), clew.tensor([[1]] * 4))
    assert (got[:, 1] == 1.5).all()
    got = vmap(lambda a, i: a.scatter(0, i, 1.5))(normal(4).float(), clew.tensor([0] * 4))
    assert (got == 1.5).all()


def test_jacobians_of_numbers():
    x = clew.tensor(0.5, dtype=clew.float64)
    for jacobian in (jacrev, jacfwd, lambda f: jacrev(f, chunk_size=1)):
        close(jacobian(clew.sin)(x), x.cos())
        close(vmap(jacobian(clew.sin))(normal(3)), normal(3).cos())
    close(hessian(clew.sin)(x), -x.sin())


@pytest.mark.parametrize("function", [lambda x: x > 0, lambda x: (x, x.long()), lambda x: x.int()])
def test_products_with_the_jacobian_need_outputs_that_have_one(function):
    x = normal(3)
    for transform in (clew.func.jacrev(function), lambda x: clew.func.vjp(function, x)):
        with pytest.raises(RuntimeError, match="floating point or complex"):
            transform(x)
