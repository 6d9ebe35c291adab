"""nn.utils and nn.init: clipping, parametrizations, functional_call, fusion, initialisation."""

from __future__ import annotations

import copy
import math
import warnings

import numpy as np
import pytest

import clew
from clew import nn
from clew.nn import init
from clew.nn.utils import parametrizations, parametrize, stateless

D = clew.float64
t = clew.tensor


def with_grads(*values):
    made = [nn.Parameter(clew.zeros(len(v))) for v in values]
    for p, v in zip(made, values, strict=True):
        p.grad = t(v)
    return made


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_clip_grad_norm(order):
    values = [[3.0, -4.0], [12.0]]
    want = np.linalg.norm([3, -4, 12], order)
    ps = with_grads(*values)
    total = nn.utils.clip_grad_norm_([*ps, nn.Parameter(clew.ones(1))], 1.0, order)
    assert total.item() == pytest.approx(want, rel=1e-5)
    np.testing.assert_allclose(ps[0].grad.numpy(), np.array(values[0]) / want, rtol=1e-4)
    ps = with_grads(*values)
    nn.utils.clip_grad_norm_(iter(ps), 1e6, order, foreach=True)
    assert ps[0].grad.tolist() == values[0]
    assert nn.utils.get_total_norm([p.grad for p in ps], order).item() == pytest.approx(want)


def test_clipping_edges():
    assert nn.utils.clip_grad_norm_([nn.Parameter(clew.ones(1))], 1.0).item() == 0
    (p,) = with_grads([math.inf])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    (p,) = with_grads([-5.0, 0.5, 9.0])
    nn.utils.clip_grad_value_(p, 1.0)
    assert p.grad.tolist() == [-1, 0.5, 1]


def test_vectors():
    m = nn.Linear(2, 2)
    vec = nn.utils.parameters_to_vector(m.parameters())
    assert vec.shape == (6,) and vec.requires_grad
    nn.utils.vector_to_parameters(clew.arange(6.0), m.parameters())
    assert m.weight.tolist() == [[0, 1], [2, 3]] and m.bias.tolist() == [4, 5]
    with pytest.raises(TypeError):
        nn.utils.vector_to_parameters(3, m.parameters())


@pytest.mark.filterwarnings("ignore:nn.utils.weight_norm")
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    plain = nn.Linear(3, 2)
    x = clew.randn(4, 3)
    want = plain(x)
    for make, names in (
        (parametrizations.weight_norm, ["bias", "parametrizations.weight.original0",
                                        "parametrizations.weight.original1"]),
        (nn.utils.weight_norm, ["bias", "weight_g", "weight_v"]),
    ):  # fmt: skip
        m = make(copy.deepcopy(plain), dim=dim)
        assert list(m.state_dict()) == names
        np.testing.assert_allclose(m(x).detach().numpy(), want.detach().numpy(), atol=1e-6)
        m(x).sum().backward()
        params = dict(m.named_parameters())
        g, v = params[names[1]], params[names[2]]
        assert g.grad is not None
        # The length of the direction has no say.
        assert abs((v.grad * v).sum().item()) < 1e-4
        with clew.no_grad():
            g.mul_(2)
        np.testing.assert_allclose(
            (m(x) - m.bias).detach().numpy(), 2 * (want - plain.bias).detach().numpy(), atol=1e-5
        )
    nn.utils.remove_weight_norm(m)
    assert isinstance(m.weight, nn.Parameter) and sorted(m.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(m)


@pytest.mark.filterwarnings("ignore:nn.utils.weight_norm")
def test_weight_norm_reads_old_states():
    old = nn.utils.weight_norm(nn.Linear(3, 2))
    new = parametrizations.weight_norm(nn.Linear(3, 2))
    new.load_state_dict(old.state_dict())
    x = clew.randn(1, 3)
    np.testing.assert_allclose(new(x).detach().numpy(), old(x).detach().numpy(), atol=1e-6)


def test_spectral_norm():
    for make in (parametrizations.spectral_norm, nn.utils.spectral_norm):
        m = make(nn.Linear(4, 3, dtype=D), n_power_iterations=400)
        m(clew.ones(1, 4, dtype=D))
        top = np.linalg.svd(m.weight.detach().numpy(), compute_uv=False)[0]
        assert top == pytest.approx(1, abs=1e-6)
        m.eval()
        a, b = m(clew.ones(1, 4, dtype=D)), m(clew.ones(1, 4, dtype=D))
        assert clew.equal(a, b)
        a.sum().backward()
    nn.utils.remove_spectral_norm(m)
    assert sorted(m.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="positive"):
        parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)


def test_spectral_norm_of_two_calls_before_backward():
    """The second call steps the vectors on; the first one's graph keeps those it used."""
    for make in (parametrizations.spectral_norm, nn.utils.spectral_norm):
        m = make(nn.Linear(4, 3, dtype=D))
        x = clew.randn(2, 4, dtype=D)
        (m(x) + m(x)).sum().backward()
        assert all(p.grad.isfinite().all() for p in m.parameters())


def test_spectral_norm_of_old_checkpoints():
    """Once the divided weight was saved and v was not."""
    m = nn.utils.spectral_norm(nn.Linear(4, 3, dtype=D), n_power_iterations=50)
    x = clew.ones(1, 4, dtype=D)
    expected = m(x)
    new = m.state_dict()
    assert new._metadata[""]["spectral_norm"] == {"weight.version": 1}
    old = {k: v.clone() for k, v in new.items() if k != "weight_v"}
    old["weight"] = m.weight.detach().clone()
    other = nn.Sequential(nn.utils.spectral_norm(nn.Linear(4, 3, dtype=D))).eval()
    other.load_state_dict({f"0.{k}": v for k, v in old.items()})
    assert clew.allclose(other(x), expected) and clew.allclose(other[0].weight_v, new["weight_v"])
    other.load_state_dict({f"0.{k}": v for k, v in new.items()})
    del old["weight_u"]
    with pytest.raises(RuntimeError, match="weight_u"):
        m.load_state_dict(old)
    nn.utils.remove_spectral_norm(m)
    assert not m._state_dict_hooks and not m._load_state_dict_pre_hooks


@pytest.mark.parametrize("iterations", [0, 14])
def test_spectral_norm_starts_with_15_iterations(iterations):
    """Before the first call the vectors have converged as far as 15 steps bring them."""
    weight = clew.diag(clew.tensor([3.0, 2.0, 1.0], dtype=D))
    m = nn.Linear(3, 3, dtype=D).eval()  # in training each call is one more
    with clew.no_grad():
        m.weight.copy_(weight)
    clew.manual_seed(4)
    parametrizations.spectral_norm(m)
    part = m.parametrizations.weight[0]
    clew.manual_seed(4)
    u = clew.empty(3, dtype=D).normal_(0, 1)
    v = clew.empty(3, dtype=D).normal_(0, 1)
    u, v = u / u.norm(), v / v.norm()

    def step(v):
        u = weight @ v
        u = u / u.norm()
        v = weight.t() @ u
        return u, v / v.norm()

    for _ in range(iterations):
        u, v = step(v)
    assert not clew.allclose(v, part._v, rtol=0, atol=1e-12)
    for _ in range(15 - iterations):
        u, v = step(v)
    assert clew.allclose(v, part._v, rtol=0, atol=1e-14)
    assert clew.allclose(u, part._u, rtol=0, atol=1e-14)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("base", [True, False])
def test_orthogonal(shape, how, base):
    m = nn.Linear(*shape, bias=False, dtype=D)
    parametrizations.orthogonal(m, orthogonal_map=how, use_trivialization=base)

    def check():
        w = m.weight.detach().numpy()
        w = w if w.shape[0] >= w.shape[1] else w.T
        np.testing.assert_allclose(w.T @ w, np.eye(w.shape[1]), atol=1e-10)

    check()
    original = m.parametrizations.weight.original
    (m.weight * clew.randn(*m.weight.shape, dtype=D)).sum().backward()
    assert original.grad.any()
    with clew.no_grad():
        original.sub_(0.3 * original.grad)
    check()
    if base or how == "householder":
        want = init.orthogonal_(clew.empty(*m.weight.shape, dtype=D))
        m.weight = want
        np.testing.assert_allclose(m.weight.detach().numpy(), want.numpy(), atol=1e-10)


def test_orthogonal_derivative():
    for how in ("matrix_exp", "cayley", "householder"):
        p = parametrizations._Orthogonal(clew.zeros(3, 3), how, use_trivialization=False)
        x = (clew.randn(3, 3, dtype=D) * 3).requires_grad_()
        assert clew.autograd.gradcheck(p, (x,))


class Positive(nn.Module):
    def forward(self, x):
        return x.exp()

    def right_inverse(self, x):
        return x.log()


class Double(nn.Module):
    def forward(self, x):
        return 2 * x


def test_cached_parameters_of_several_modules():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    for m in (a, b):
        parametrize.register_parametrization(m, "weight", Double())
    with parametrize.cached():
        assert a.weight.equal(2 * a.parametrizations.weight.original)
        assert b.weight.equal(2 * b.parametrizations.weight.original)


def test_parametrize():
    m = nn.Linear(2, 2)
    parametrize.register_parametrization(m, "weight", Double())
    assert parametrize.is_parametrized(m) and parametrize.is_parametrized(m, "weight")
    assert not parametrize.is_parametrized(m, "bias") and isinstance(m, nn.Linear)
    assert type(m).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(m) is nn.Linear
    parametrize.register_parametrization(m, "weight", Double())
    assert m.weight.tolist() == (4 * m.parametrizations.weight.original).tolist()
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    with parametrize.cached():
        assert m.weight is m.weight
    assert m.weight is not m.weight
    other = copy.deepcopy(m)
    assert other.weight.tolist() == m.weight.tolist() and type(other) is type(m)
    with pytest.raises(RuntimeError, match="Serialization"):
        m.__getstate__()
    with pytest.raises(RuntimeError, match="right_inverse"):
        m.weight = clew.ones(2, 2)
    want = m.weight.tolist()
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear and m.weight.tolist() == want
    assert isinstance(m.weight, nn.Parameter) and list(m.state_dict()) == ["bias", "weight"]

    m = nn.Linear(1, 1)
    with clew.no_grad():
        m.weight.fill_(3.0)
    parametrize.register_parametrization(m, "weight", Positive())
    assert m.weight.item() == pytest.approx(3.0)
    m.weight = t([[5.0]])
    assert m.parametrizations.weight.original.item() == pytest.approx(math.log(5))
    parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)
    assert m.weight.item() == pytest.approx(math.log(5))
    target = nn.Linear(1, 1)
    parametrize.register_parametrization(m, "weight", Positive())
    parametrize.transfer_parametrizations_and_params(m, target)
    assert target.weight.item() == pytest.approx(m.weight.item())


def test_parametrize_mistakes():
    class Grows(nn.Module):
        def forward(self, x):
            return clew.cat([x, x])

    m = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(m, "weight", Grows())
    parametrize.register_parametrization(m, "bias", Grows(), unsafe=True)
    assert m.bias.shape == (4,)
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(m, "nothing", Double())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(nn.Linear(1, 1), "weight")


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", clew.zeros(()))
        self.weight = nn.Parameter(clew.ones(()))

    def forward(self, x):
        self.count = self.count + 1
        return x * self.weight * self.count


def test_functional_call_hands_back_what_the_call_assigned():
    for call in (stateless.functional_call, clew.func.functional_call):
        m = Counting()
        state = {"count": clew.tensor(4.0), "weight": clew.tensor(2.0)}
        weight = state["weight"]
        assert call(m, state, (clew.tensor(3.0),)).item() == 30
        assert state["count"].item() == 5 and state["weight"] is weight
        assert call(m, state, (clew.tensor(3.0),)).item() == 36
        assert m.count.item() == 0
        only = {"weight": weight}
        assert call(m, only, (clew.tensor(3.0),)).item() == 6 and list(only) == ["weight"]


def test_functional_call():
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    own = dict(m.named_parameters())
    x = clew.randn(3, 2)
    new = {"0.weight": clew.eye(2), "0.bias": clew.zeros(2)}
    m.eval()
    got = stateless.functional_call(m, new, x)
    np.testing.assert_allclose(got.detach().numpy(), x.numpy() / math.sqrt(1 + 1e-5), rtol=1e-5)
    assert all(p is own[k] for k, p in m.named_parameters())
    got = stateless.functional_call(m, ({"0.weight": clew.eye(2)}, {"0.bias": clew.ones(2)}), (x,))
    np.testing.assert_allclose(got.detach().numpy(), (x.numpy() + 1) / math.sqrt(1 + 1e-5), 1e-5)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        stateless.functional_call(m, (new, new), x)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\)"):
        stateless.functional_call(m, new, x, strict=True)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'no'"):
        stateless.functional_call(m, {**m.state_dict(), "no": x}, x, strict=True)
    with pytest.raises(ZeroDivisionError):

        class Breaks(nn.Linear):
            def forward(self, x):
                return 1 / 0

        broken = Breaks(1, 1)
        weight = broken.weight
        try:
            stateless.functional_call(broken, {"weight": clew.ones(1, 1)}, x)
        finally:
            assert broken.weight is weight


def test_functional_call_with_tied_weights():
    m = nn.ModuleDict({"a": nn.Linear(1, 1, bias=False), "b": nn.Linear(1, 1, bias=False)})
    m["b"].weight = m["a"].weight
    m.forward = lambda x: m["b"](m["a"](x))
    new = {"a.weight": t([[3.0]])}
    assert stateless.functional_call(m, new, t([1.0])).item() == 9
    own = m["a"].weight.item()
    got = stateless.functional_call(m, new, t([1.0]), tie_weights=False).item()
    assert got == pytest.approx(3 * own)


def test_fusion_and_skip_init():
    conv, bn = nn.Conv2d(2, 3, 2).eval(), nn.BatchNorm2d(3)
    x = clew.randn(2, 2, 4, 4)
    bn(conv(x))
    bn.eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, bn)
    np.testing.assert_allclose(fused(x).detach().numpy(), bn(conv(x)).detach().numpy(), atol=1e-5)
    lin, bn = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3)
    y = clew.randn(4, 2)
    bn(lin(y))
    bn.eval()
    fused = nn.utils.fuse_linear_bn_eval(lin, bn)
    np.testing.assert_allclose(fused(y).detach().numpy(), bn(lin(y)).detach().numpy(), atol=1e-5)
    m = nn.utils.skip_init(nn.Linear, 3, 2)
    assert not m.weight.is_meta and m.weight.shape == (2, 3)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        nn.utils.skip_init(nn.ReLU)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        *((n, ()) for n in ("ones_", "zeros_", "uniform_", "normal_", "trunc_normal_", "eye_")),
        *((f"{n}_{d}_", ()) for n in ("xavier", "kaiming") for d in ("uniform", "normal")),
        *(("orthogonal_", ()), ("constant_", (2.0,))),
    ],
)
def test_what_has_no_values_is_begun_all_the_same(name, args):
    t = clew.empty(6, 4, device="meta")
    state = clew.get_rng_state()
    assert getattr(init, name)(t, *args) is t and t.is_meta
    assert clew.equal(clew.get_rng_state(), state)


def test_init_distributions():
    w = clew.empty(200, 300)
    bound = math.sqrt(6 / 300)
    init.kaiming_uniform_(w)
    assert w.abs().max().item() <= bound and w.std().item() == pytest.approx(
        bound / 3**0.5, rel=0.02
    )
    init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu")
    assert w.std().item() == pytest.approx(math.sqrt(2 / 200), rel=0.02)
    init.xavier_uniform_(w, 2.0)
    assert w.std().item() == pytest.approx(2 * math.sqrt(2 / 500), rel=0.02)
    init.xavier_normal_(w)
    assert w.std().item() == pytest.approx(math.sqrt(2 / 500), rel=0.02)
    init.trunc_normal_(w, 1.0, 2.0, 0.0, 1.5)
    assert 0 <= w.min().item() and w.max().item() <= 1.5
    init.trunc_normal_(w, 0.0, 1.0, 1.9, 2.0)
    assert 1.9 <= w.min().item() and w.max().item() <= 2.0
    init.sparse_(w, 0.25)
    assert ((w == 0).sum(0) == 50).all()
    init.orthogonal_(w, 2.0)
    np.testing.assert_allclose((w @ w.t()).numpy(), 4 * np.eye(200), atol=1e-4)
    assert init.eye_(clew.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    x = clew.randn(1, 4, 5)
    m = nn.Conv1d(4, 4, 3, padding=1, groups=2, bias=False)
    init.dirac_(m.weight, 2)
    assert clew.equal(m(x), x)
    assert not init.ones_(nn.Parameter(clew.zeros(2))).grad_fn
    g = clew.Generator().manual_seed(3)
    a = init.uniform_(clew.empty(3), 1, 2, g)
    assert clew.equal(a, init.uniform_(clew.empty(3), 1, 2, clew.Generator().manual_seed(3)))


@pytest.mark.parametrize(
    "mean, std, a, b",
    [(0.0, 1.0, 3.0, math.inf), (0.0, 1.0, -math.inf, -2.0), (0.0, 2.0, 60.0, 90.0)]
    + [(5.0, 2.0, -1.0, -0.5), (0.0, 1.0, -0.2, 0.3), (1e6, 1.0, 0.0, 1.0)],
)
def test_tails_of_the_truncated_normal_distribution(mean, std, a, b):
    stats = pytest.importorskip("scipy.stats")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = init.trunc_normal_(clew.empty(4000, dtype=clew.float64), mean, std, a, b).numpy()
    assert a <= x.min() and x.max() <= b
    low, high = (a - mean) / std, (b - mean) / std
    if abs(low) < 100:
        assert stats.kstest(x, stats.truncnorm(low, high, mean, std).cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (lambda: init.kaiming_uniform_(clew.empty(3)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_uniform_(clew.empty(3, 3), mode="no"), "Mode no not supported"),
        (lambda: init.calculate_gain("no"), "nonlinearity no"),
        (lambda: init.calculate_gain("leaky_relu", "x"), "not a valid number"),
        (lambda: init.eye_(clew.empty(3)), "2 dimensions"),
        (lambda: init.dirac_(clew.empty(3, 3)), "3, 4, or 5"),
        (lambda: init.dirac_(clew.empty(3, 3, 3), 2), "divisible by groups"),
        (lambda: init.orthogonal_(clew.empty(3)), "2 or more"),
        (lambda: init.sparse_(clew.empty(3), 0.5), "2 dimensions"),
    ],
)
def test_init_mistakes(what, text):
    with pytest.raises(ValueError) as caught:
        what()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.numel(),
        lambda p: p.clone(),
        lambda p: p.detach(),
        lambda p: p + 1,
        lambda p: clew.add(p, 1),
        lambda p: len(p),
        lambda p: p.norm(),
        lambda p: p.zero_(),
        lambda p: p.data_ptr(),
        lambda p: p.is_contiguous(),
        lambda p: nn.init.zeros_(p),
        lambda p: nn.functional.linear(clew.ones(1, 2), p),
    ],
)
@pytest.mark.parametrize("kind", [nn.UninitializedParameter, nn.parameter.UninitializedBuffer])
def test_nothing_computes_with_a_tensor_without_a_shape(kind, use):
    with pytest.raises(ValueError, match="no shape yet"):
        use(kind())


def test_what_may_be_asked_of_a_tensor_without_a_shape():
    p = nn.LazyLinear(3).weight
    for name in ("shape", "T", "mT"):
        with pytest.raises(RuntimeError, match="Can't access the shape of an uninit.*`forward`"):
            getattr(p, name)
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        nn.Linear(2, 3).load_state_dict(nn.LazyLinear(3).state_dict())
    assert p.size() == (0,) and p.dtype is clew.float32 and p.requires_grad and p.is_leaf
    assert repr(p) == "<UninitializedParameter>" and p.grad is None and p.device.type == "cpu"
    assert nn.LazyLinear(3).double().weight.dtype is clew.float64
    clew.optim.SGD([p], lr=0.1)
    p.materialize((2, 3))
    assert p.shape == (2, 3) and (p * 0 + 1).sum().item() == 6  # and is as any other


def test_a_shapeless_value_is_loaded_into_a_shapeless_place():
    """By modules that make such parameters without being of the lazy kind."""

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

    own, given = Own(), Own()
    assert not any(own.load_state_dict(given.state_dict(keep_vars=True)))
    assert isinstance(own.weight, nn.UninitializedParameter)
    given.weight.materialize((2,))
    given.weight.data.fill_(3.0)
    own.load_state_dict(given.state_dict())
    assert type(own.weight) is nn.Parameter and own.weight.tolist() == [3, 3]


def test_conversions_leave_lazy_parameters_and_buffers_lazy():
    for kind in (nn.LazyBatchNorm1d, nn.LazyInstanceNorm1d):
        m = kind(affine=True, track_running_stats=True).double()
        assert isinstance(m.running_mean, nn.parameter.UninitializedBuffer)
        m(clew.ones(3, 2, 4, dtype=clew.float64))
        assert m.running_mean.dtype is m.weight.dtype is clew.float64
        assert m.running_mean.shape == m.weight.shape == (2,)
    m = nn.LazyLinear(3).to("meta")
    assert nn.parameter.is_lazy(m.weight) and m.weight.device.type == "meta"
    assert m(clew.ones(2, 4, device="meta")).shape == (2, 3) and m.weight.shape == (3, 4)


def test_lazy_modules():
    m = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert isinstance(m[0].weight, nn.UninitializedParameter)
    assert "weight" in m[3].state_dict()
    assert m(clew.randn(2, 3, 5, 5)).shape == (2, 2)
    assert type(m[0]) is nn.Conv2d and type(m[1]) is nn.BatchNorm2d and type(m[3]) is nn.Linear
    assert m[0].in_channels == 3 and m[3].in_features == 36 and type(m[3].weight) is nn.Parameter
    other = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    other.load_state_dict(m.state_dict())
    x = clew.randn(2, 3, 5, 5)
    assert clew.equal(m.eval()(x), other.eval()(x)) and other[3].in_features == 36
    clew.manual_seed(1)
    lazy = nn.LazyLinear(3)
    lazy(clew.ones(1, 2))
    clew.manual_seed(1)
    assert clew.equal(lazy.weight, nn.Linear(2, 3).weight)
    unused = copy.deepcopy(nn.LazyLinear(3))
    assert isinstance(unused.weight, nn.UninitializedParameter)
    for name in ("LazyConvTranspose1d", "LazyConv1d"):
        layer = getattr(nn, name)(4, 3)
        assert layer(clew.ones(1, 2, 8)).shape[1] == 4
    with pytest.raises(RuntimeError, match="batched"):
        nn.LazyConv1d(4, 3)(clew.ones(1, 2, 8, 8))
