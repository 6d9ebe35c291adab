"""Losses against their formulas in NumPy, every reduction and argument, and their errors."""

from __future__ import annotations

import numpy as np
import pytest
from loss_formulas import SIGN, WC, P, T, W, X, Y, close, log_softmax, reduced, rng, t

import clew
from clew import nn
from clew.nn import functional as F
from samples import sigmoid

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smooth", [0.0, 0.2])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_cross_entropy(how, weighted, smooth, ignored):
    w = WC if weighted else np.ones(3)
    logp = log_softmax(X)
    keep = (T != ignored).astype(float)
    nll = -logp[np.arange(4), T] * w[T] * keep
    even = -(logp * w).sum(1) * keep
    total = (w[T] * keep).sum()
    if how == "mean":
        nll, even = nll.sum() / total, even.sum() / total
    else:
        nll, even = reduced(nll, how), reduced(even, how)
    want = (1 - smooth) * nll + smooth / 3 * even
    weight = t(WC) if weighted else None
    got = F.cross_entropy(
        t(X), t(T), weight, ignore_index=ignored, reduction=how, label_smoothing=smooth
    )
    close(got, want)
    if not smooth:
        got = F.nll_loss(t(logp), t(T), weight, ignore_index=ignored, reduction=how)
        close(got, want)


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_cross_entropy_other_shapes(how):
    probs = np.exp(log_softmax(Y))
    smooth = probs * 0.9 + 0.1 / 3
    want = -(log_softmax(X) * smooth * WC).sum(1)
    got = F.cross_entropy(t(X), t(probs), t(WC), reduction=how, label_smoothing=0.1)
    close(got, want.sum() / 4 if how == "mean" else reduced(want, how))
    close(F.cross_entropy(t(X[0]), t(2), reduction=how), -log_softmax(X[:1])[0, 2])
    big, at = rng.normal(size=(2, 3, 4)), rng.integers(0, 3, size=(2, 4))
    want = -np.take_along_axis(log_softmax(big), at[:, None], 1)[:, 0]
    close(F.cross_entropy(t(big), t(at), reduction=how), reduced(want, how))


def test_cross_entropy_where_nothing_counts():
    got = F.cross_entropy(t(X), t([-100] * 4))
    assert np.isnan(got.item())
    assert F.cross_entropy(t(X), t([-100] * 4), reduction="sum").item() == 0


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_binary(how):
    want = -(Y_ := P[::-1]) * np.log(P) - (1 - Y_) * np.log(1 - P)
    close(F.binary_cross_entropy(t(P), t(Y_.copy()), reduction=how), reduced(want, how))
    got = F.binary_cross_entropy(t(P), t(Y_.copy()), t(W), reduction=how)
    close(got, reduced(want * W, how))
    p = sigmoid(X)
    want = -(P * WC * np.log(p) + (1 - P) * np.log(1 - p)) * W
    got = F.binary_cross_entropy_with_logits(t(X), t(P), t(W), reduction=how, pos_weight=t(WC))
    close(got, reduced(want, how))
    big = F.binary_cross_entropy_with_logits(t([1000.0, -1000.0]), t([0.0, 1.0]), reduction="none")
    assert big.tolist() == [1000, 1000]
    want = (-(P * np.log(p) + (1 - P) * np.log(1 - p)) * WC).mean(1)
    got = F.multilabel_soft_margin_loss(t(X), t(P), t(WC), reduction=how)
    close(got, reduced(want, how))


def test_binary_at_the_edges():
    x = t([0.0, 1.0, 1.0, 0.0], requires_grad=True)
    loss = F.binary_cross_entropy(x, t([0.0, 1.0, 0.0, 1.0]), reduction="none")
    assert loss.tolist() == [0, 0, 100, 100]
    loss.sum().backward()
    assert x.grad.tolist() == [0, 0, pytest.approx(1e12), pytest.approx(-1e12)]


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_divergences_and_likelihoods(how):
    q = np.exp(log_softmax(Y))
    want = q * (np.log(q) - log_softmax(X))
    close(F.kl_div(t(log_softmax(X)), t(q), reduction=how), reduced(want, how))
    got = F.kl_div(t(log_softmax(X)), t(np.log(q)), reduction=how, log_target=True)
    close(got, reduced(want, how))
    close(F.kl_div(t(log_softmax(X)), t(q), reduction="batchmean"), want.sum() / 4)
    assert F.kl_div(t([-1.0]), t([0.0]), reduction="sum").item() == 0
    counts = np.array([[0.0, 1, 2], [3, 4, 5], [6, 1, 0], [2, 2, 2]])
    close(F.poisson_nll_loss(t(X), t(counts), reduction=how), reduced(np.exp(X) - counts * X, how))
    with np.errstate(all="ignore"):
        more = counts * np.log(counts) - counts + 0.5 * np.log(2 * np.pi * counts)
    more = np.where(counts > 1, more, 0)
    want = W - counts * np.log(W + 1e-3) + more
    got = F.poisson_nll_loss(t(W), t(counts), False, True, eps=1e-3, reduction=how)
    close(got, reduced(want, how))
    want = 0.5 * (np.log(W) + (X - Y) ** 2 / W)
    close(F.gaussian_nll_loss(t(X), t(Y), t(W), reduction=how), reduced(want, how))
    got = F.gaussian_nll_loss(t(X), t(Y), t(W[:, 0].copy()), True, reduction=how)
    v = W[:, :1]
    want = 0.5 * (np.log(v) + (X - Y) ** 2 / v) + 0.5 * np.log(2 * np.pi)
    close(got, reduced(want, how))


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_margins(how):
    s = np.broadcast_to(SIGN[:, None], (4, 3)).copy()
    want = np.where(s == 1, X, np.maximum(0, 0.7 - X))
    close(F.hinge_embedding_loss(t(X), t(s), 0.7, reduction=how), reduced(want, how))
    close(F.soft_margin_loss(t(X), t(s), reduction=how), reduced(np.log1p(np.exp(-s * X)), how))
    want = np.maximum(0, -SIGN * (X[:, 0] - Y[:, 0]) + 0.3)
    got = F.margin_ranking_loss(t(X[:, 0].copy()), t(Y[:, 0].copy()), t(SIGN), 0.3, reduction=how)
    close(got, reduced(want, how))
    cos = (X * Y).sum(1) / np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1)
    want = np.where(SIGN == 1, 1 - cos, np.maximum(0, cos - 0.1))
    got = F.cosine_embedding_loss(t(X), t(Y), t(SIGN), 0.1, reduction=how)
    np.testing.assert_allclose(got.numpy(), reduced(want, how), rtol=1e-6)
    right = X[np.arange(4), T][:, None]
    for p in (1, 2):
        gap = np.maximum(0, 0.5 - right + X) ** p * WC[T][:, None]
        gap[np.arange(4), T] = 0
        got = F.multi_margin_loss(t(X), t(T), p, 0.5, t(WC), reduction=how)
        close(got, reduced(gap.sum(1) / 3, how))
    labels = np.array([[2, 0, -1], [1, -1, 0], [-1, 0, 1], [0, 1, 2]])
    want = np.zeros(4)
    for n in range(4):
        own = list(labels[n][: np.argmax(labels[n] < 0) if (labels[n] < 0).any() else 3])
        for j in own:
            want[n] += sum(max(0, 1 - (X[n, j] - X[n, c])) for c in range(3) if c not in own) / 3
    close(F.multilabel_margin_loss(t(X), t(labels), reduction=how), reduced(want, how))


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
@pytest.mark.parametrize("swap", [False, True])
def test_triplets(how, swap):
    z = P

    def dist(a, b, p=3.0):
        return (np.abs(a - b + 1e-6) ** p).sum(1) ** (1 / p)

    far = np.minimum(dist(X, z), dist(Y, z)) if swap else dist(X, z)
    want = np.maximum(0, dist(X, Y) - far + 1.5)
    args = t(X), t(Y), t(z)
    close(F.triplet_margin_loss(*args, 1.5, 3.0, swap=swap, reduction=how), reduced(want, how))
    got = F.triplet_margin_with_distance_loss(
        *args, distance_function=nn.PairwiseDistance(3.0), margin=1.5, swap=swap, reduction=how
    )
    close(got, reduced(want, how))


def test_old_arguments():
    args = t(X), t(Y)
    want = {(None, False): "none", (False, None): "sum", (True, True): "mean"}
    for (average, reduce), how in want.items():
        with pytest.warns(UserWarning, match="reduction="):
            got = F.mse_loss(*args, average, reduce)
        close(got, F.mse_loss(*args, reduction=how).numpy())
        with pytest.warns(UserWarning):
            assert nn.L1Loss(average, reduce).reduction == how


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        (lambda: F.mse_loss(t(X), t(Y), reduction="no"), ValueError, "no is not a valid value"),
        (lambda: F.nll_loss(t(X), t(T), reduction="no"), ValueError, "no is not a valid value"),
        (lambda: F.cross_entropy(t(X), t(T[:2])), ValueError, "batch_size"),
        (lambda: F.cross_entropy(t(X), t([0, 1, 9, 0])), IndexError, "arget 9 is out of bounds"),
        (lambda: F.cross_entropy(t(X), t(T), t([1.0])), RuntimeError, "weight"),
        (lambda: F.cross_entropy(t(X), t(T), label_smoothing=2), RuntimeError, "label_smoothing"),
        (lambda: F.binary_cross_entropy(t(X) * 9, t(P)), RuntimeError, "between 0 and 1"),
        (lambda: F.binary_cross_entropy(t(P), t(P[:2])), ValueError, "same shape"),
        (lambda: F.binary_cross_entropy_with_logits(t(X), t(P[0])), ValueError, "must be the same"),
        (lambda: F.smooth_l1_loss(t(X), t(Y), beta=-1), RuntimeError, "beta"),
        (lambda: F.smooth_l1_loss(t(X), t(Y), beta=np.nan), RuntimeError, "beta"),
        (lambda: F.smooth_l1_loss(t(X), t(Y), beta="1"), TypeError, "beta"),
        (lambda: F.huber_loss(t(X), t(Y), delta=0), RuntimeError, "delta"),
        (lambda: F.huber_loss(t(X), t(Y), delta=np.nan), RuntimeError, "delta"),
        (lambda: F.huber_loss(t(X), t(Y), delta="1"), TypeError, "delta"),
        (lambda: F.triplet_margin_loss(t(X), t(Y), t(P), 0), ValueError, "margin"),
        (lambda: F.multi_margin_loss(t(X), t(T), 3), ValueError, "p == 1"),
        (lambda: F.gaussian_nll_loss(t(X), t(Y), t(-W)), ValueError, "negative"),
        (lambda: F.gaussian_nll_loss(t(X), t(Y), t([1.0, 2.0])), ValueError, "incorrect size"),
        (lambda: F.cosine_embedding_loss(t(X), t(Y), t(X)), RuntimeError, "0D or 1D target"),
        (lambda: F.ctc_loss(t(X), t([1]), t(9), t(1)), RuntimeError, "input_lengths"),
        (lambda: F.ctc_loss(t(X), t([1]), t(4), t(1), 7), RuntimeError, "blank"),
    ],
)  # fmt: skip
def test_mistakes(what, error, text):
    with pytest.raises(error) as caught:
        what()
    assert text in str(caught.value)


def test_derivatives_at_margins_and_second_order():
    x = clew.randn(3, 4, dtype=clew.float64, requires_grad=True)
    y = clew.tensor([1, 0, 3])
    for fn in (
        lambda a: F.cross_entropy(a, y, label_smoothing=0.1),
        lambda a: F.binary_cross_entropy(a.sigmoid(), clew.ones(3, 4, dtype=clew.float64)),
        lambda a: F.gaussian_nll_loss(a, a * 2, a.exp()),
        lambda a: F.kl_div(a, clew.softmax(a, 1), reduction="sum"),
    ):
        assert clew.autograd.gradcheck(fn, (x,)) and clew.autograd.gradgradcheck(fn, (x,))


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [clew.bfloat16, clew.float16, clew.float32, clew.float64])
def test_slopes_of_sure_scores(dtype, weighted, recorded):
    scores = np.array([-30, -17.5, -12, -8.5, -6.5, -5, 0.5, 5, 8.5, 12.0])
    x = clew.tensor(scores, dtype=dtype, requires_grad=True)
    weight = clew.full((), 2.0, dtype=dtype) if weighted else None
    for target in (0.0, 1.0, 0.25):
        t = clew.full_like(x, target)
        how = {"reduction": "sum", "pos_weight": weight}
        loss = F.binary_cross_entropy_with_logits(x, t, **how)
        (slope,) = clew.autograd.grad(loss, x, create_graph=recorded)
        given = x.detach().double().numpy()
        up, down = 1 / (1 + np.exp(-given)), 1 / (1 + np.exp(given))
        want = (1 - target) * up - (2 if weighted else 1) * target * down
        eps = clew.finfo(dtype).eps
        got = slope.detach().double().numpy()
        least = 6e-8 if dtype == clew.float16 else 0  # below it a float16 has no numbers
        np.testing.assert_allclose(got, want, rtol=5 * eps, atol=least)


@pytest.mark.parametrize("dtype", [clew.float16, clew.bfloat16, clew.float32])
def test_certain_probabilities(dtype):
    p = clew.tensor([0.0, 1.0, 0.0, 0.0, 0.5, 0.25], dtype=dtype, requires_grad=True)
    t = clew.tensor([0.0, 1.0, 0.5, 1.0, 1.0, 0.0], dtype=dtype)
    for recorded in (False, True):
        loss = F.binary_cross_entropy(p, t, reduction="none")
        want = [0, 0, 50, 100, np.log(2), -np.log(0.75)]
        eps = float(clew.finfo(dtype).eps)
        np.testing.assert_allclose(loss.detach().double().numpy(), want, rtol=eps)
        if recorded and dtype == clew.float16:
            continue  # 1e-12 is 0 in it
        (slope,) = clew.autograd.grad(loss.sum(), p, create_graph=recorded)
        got = slope.detach().double().numpy()
        assert got[:2].tolist() == [0, 0] and (got[2:4] < -1e4).all()
        np.testing.assert_allclose(got[4:], [-2, 4 / 3], rtol=2 * eps)


@pytest.mark.parametrize(
    "f, low", [(F.binary_cross_entropy, 0.1), (F.binary_cross_entropy_with_logits, -3.0)]
)
def test_derivatives_of_binary_cross_entropies(f, low):
    x = t(rng.uniform(low, 0.9, (3, 4))).requires_grad_()
    y = t(rng.uniform(0.1, 0.9, (3, 4))).requires_grad_()
    weight = t(rng.uniform(0.5, 2, (4,)))
    for how in ("none", "mean", "sum"):
        for g in (
            lambda a, b, how=how: f(a, b, reduction=how),
            lambda a, b, how=how: f(a.t(), b.t(), weight.reshape(4, 1), reduction=how),
        ):
            clew.autograd.gradcheck(g, [x, y], check_forward_ad=True)
            clew.autograd.gradgradcheck(g, [x, y])
    if f is F.binary_cross_entropy_with_logits:
        clew.autograd.gradcheck(lambda a, b: f(a, b, pos_weight=weight), [x, y])
        clew.autograd.gradgradcheck(lambda a, b: f(a, b, pos_weight=weight), [x, y])


@pytest.mark.parametrize(
    "scores,target,weight,message",
    [
        ((5, 0), [0] * 5, None, "a class at least"),
        ((5, 4), [0.0] * 5, None, "target must be int64; got clew.float32"),
        ((5, 4), [0] * 5, [1.0] * 5, "each of 4 classes; got 5"),
        ((5, 4), [0] * 4, None, "one index for each row"),
    ],
)
def test_multi_margin_loss_refuses(scores, target, weight, message):
    weight = None if weight is None else clew.tensor(weight)
    with pytest.raises(RuntimeError, match=message):
        F.multi_margin_loss(clew.zeros(scores), clew.tensor(target), weight=weight)


def test_margin_losses_without_rows_or_classes():
    scores, one = t([0.5, 2.0, 1.75, 0.0]), clew.tensor([1])
    assert F.multi_margin_loss(scores, one, reduction="none").tolist() == [0.1875]
    assert F.multi_margin_loss(scores, one[0], reduction="none").shape == ()
    for shape in ((0,), (2, 0), (1, 2, 3)):
        with pytest.raises(RuntimeError, match="a class at least"):
            F.multilabel_margin_loss(clew.ones(shape), clew.zeros(shape, dtype=clew.int64))


@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy])
def test_targets_of_another_number_of_samples_are_a_value_error(loss):
    for scores, target in ((t(X[0]), clew.tensor([0, 1])), (t(X), clew.tensor(0))):
        with pytest.raises(ValueError, match="target must have shape"):
            loss(scores, target)


def test_eps_of_gaussian_nll_loss():
    """Variances below eps are taken as eps; their gradient goes on as if they were."""
    var = t([1e-9, 0.5]).requires_grad_()
    for eps, first in ((1e-3, 1e-3), (None, 1e-6)):
        options = {} if eps is None else {"eps": eps}
        got = F.gaussian_nll_loss(t([1.0, 1.0]), t([1.1, 1.1]), var, reduction="none", **options)
        expected = [0.5 * (np.log(v) + 0.01 / v) for v in (first, 0.5)]
        np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-5)
        (grad,) = clew.autograd.grad(got.sum(), var)
        expected = [0.5 * (1 / v - 0.01 / v**2) for v in (first, 0.5)]
        np.testing.assert_allclose(grad.numpy(), expected, rtol=1e-5)


def test_clusters_of_adaptive_log_softmax():
    """Each cluster's probability in the head is shared out by its own softmax."""
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], div_value=2.0, dtype=clew.float64)
    assert [tuple(w.weight.shape) for part in layer.tail for w in part] == [
        (4, 8),
        (3, 4),
        (2, 8),
        (4, 2),
    ]
    x = rng.standard_normal((10, 8))
    weights = [p.detach().numpy() for p in layer.parameters()]

    def softmax(z):
        e = np.exp(z - z.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    head = softmax(x @ weights[0].T)
    tails = [softmax(x @ weights[i].T @ weights[i + 1].T) for i in (1, 3)]
    whole = np.concatenate([head[:, :3], head[:, 3:4] * tails[0], head[:, 4:] * tails[1]], 1)
    np.testing.assert_allclose(whole.sum(1), 1)
    np.testing.assert_allclose(layer.log_prob(t(x)).detach().numpy(), np.log(whole))
    targets = np.arange(10)
    output, loss = layer(t(x), clew.tensor(targets))
    np.testing.assert_allclose(output.detach().numpy(), np.log(whole[targets, targets]))
    assert loss.item() == pytest.approx(-np.log(whole[targets, targets]).mean())
    assert layer.predict(t(x)).tolist() == whole.argmax(1).tolist()


INTEGERS = clew.tensor([[0, 1], [1, 0]])
FLOATS = clew.tensor([[0.25, 0.75], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("name", "input", "target", "message"),
    [
        ("binary_cross_entropy", FLOATS, INTEGERS, "target must be floating point"),
        ("binary_cross_entropy", FLOATS, FLOATS.double(), "target must have input's dtype"),
        ("binary_cross_entropy", INTEGERS, FLOATS, "input must be floating point"),
        ("binary_cross_entropy_with_logits", FLOATS, INTEGERS, "target must be floating point"),
        ("binary_cross_entropy_with_logits", FLOATS, INTEGERS.bool(), "target must be floating"),
        ("binary_cross_entropy_with_logits", INTEGERS, FLOATS, "input must be floating point"),
        ("kl_div", FLOATS, INTEGERS, "target must be floating point"),
        ("mse_loss", INTEGERS, INTEGERS, "must be floating point"),
        ("smooth_l1_loss", INTEGERS, INTEGERS.bool(), "must be floating point"),
        ("huber_loss", INTEGERS, FLOATS, "input must be floating point"),
        ("hinge_embedding_loss", INTEGERS, FLOATS, "must be floating point or complex"),
        ("multi_margin_loss", FLOATS, clew.tensor([0, 1], dtype=clew.int32), "must be int64"),
        ("multi_margin_loss", INTEGERS, clew.tensor([0, 1]), "input must be floating point"),
        ("multilabel_margin_loss", FLOATS, INTEGERS.int(), "must be int64"),
        ("multilabel_margin_loss", INTEGERS, INTEGERS, "input must be floating point"),
    ],
)
def test_losses_refuse_dtypes(name, input, target, message):
    with pytest.raises(RuntimeError, match=message):
        getattr(F, name)(input, target)


@pytest.mark.parametrize("bad", [4, -1])
def test_multi_margin_loss_refuses_targets_that_are_no_class(bad):
    with pytest.raises(RuntimeError, match="target is out of range"):
        F.multi_margin_loss(t(rng.normal(size=(2, 4))), t([0, bad]))


@pytest.mark.parametrize("row", [[0, 4, -1, 0], [0, -2, 1, 0], [0, -1, 9, 0], [0, -1, -5, 0]])
def test_multilabel_margin_loss_refuses_targets_that_are_no_class(row):
    # Those behind the end of the labels, too.
    with pytest.raises(RuntimeError, match="target is out of range"):
        F.multilabel_margin_loss(t(rng.normal(size=4)), t(row))


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss", "mse_loss", "soft_margin_loss"])
def test_the_first_name_of_mean(name):
    """PyTorch 0.4.1 called it so; its programs run on, with a warning."""
    x = clew.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, 0.25]])
    target = clew.tensor([2, 0]) if name in ("cross_entropy", "nll_loss") else clew.ones(2, 3)
    loss = getattr(nn.functional, name)
    with pytest.warns(UserWarning, match="use reduction='mean'"):
        given = loss(x, target, reduction="elementwise_mean")
    assert given == loss(x, target)


def test_gaussian_nll_of_integers_and_a_fraction():
    got = F.gaussian_nll_loss(clew.tensor([1, 2]), clew.tensor(0.5), 1.5)
    want = F.gaussian_nll_loss(clew.tensor([1.0, 2.0]), clew.tensor(0.5), 1.5)
    assert got.item() == want.item()
