"""ctc_loss against a count of every path, its gradients, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from loss_formulas import close, log_softmax, rng, t

import clew
from clew.nn import functional as F
from clew.nn.functional._ctc import _ctc_loss, _losses, _twofold_losses

pytestmark = pytest.mark.filterwarnings("ignore")


def brute_force_ctc(logp, target, blank):
    """Sums the probability of every path that collapses to the target."""
    steps, classes = logp.shape
    total = 0.0
    for path in np.ndindex(*[classes] * steps):
        merged = [c for k, c in enumerate(path) if k == 0 or c != path[k - 1]]
        if [c for c in merged if c != blank] == list(target):
            total += np.exp(sum(logp[k, c] for k, c in enumerate(path)))
    return -np.log(total) if total else np.inf


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_counts_every_path(blank):
    logp = log_softmax(rng.normal(size=(5, 3, 3)), 2)
    labels = [c for c in range(3) if c != blank]
    targets = [[labels[0], labels[0]], [labels[1]], [labels[0], labels[1], labels[0]]]
    lengths = [5, 4, 5]
    want = np.array([
        brute_force_ctc(logp[:n, k], y, blank)
        for k, (n, y) in enumerate(zip(lengths, targets))
    ])  # fmt: skip
    flat = t([c for y in targets for c in y])
    sizes = [len(y) for y in targets]
    args = t(logp), flat, t(lengths), t(sizes), blank
    close(F.ctc_loss(*args, "none"), want)
    close(F.ctc_loss(*args, "sum"), want.sum())
    close(F.ctc_loss(*args), (want / sizes).mean())
    padded = t([[*y, *[labels[0]] * (3 - len(y))] for y in targets])
    close(F.ctc_loss(t(logp), padded, lengths, sizes, blank, "none"), want)
    close(F.ctc_loss(t(logp[:, 0]), t(targets[0]), t(5), t(2), blank, "none"), want[0])


def test_ctc_where_no_path_fits():
    logp = t(log_softmax(rng.normal(size=(2, 1, 3)), 2)).requires_grad_()
    args = logp, t([[1, 1]]), [2], [2]
    assert np.isinf(F.ctc_loss(*args, reduction="sum").item())
    loss = F.ctc_loss(*args, reduction="sum", zero_infinity=True)
    loss.backward()
    assert loss.item() == 0 and not logp.grad.any()
    F.ctc_loss(*args, reduction="sum").backward()
    assert logp.grad.isnan().all()


@pytest.mark.parametrize(
    "change,message",
    [
        ({"targets": [1, 2, 3, 1, 2]}, "as many as target_lengths say, 4; got 5"),
        ({"targets": [1, 2, 3]}, "as many as target_lengths say, 4; got 3"),
        ({"targets": [[1, 2]] * 3}, "a row for each sequence; got \\(3, 2\\)"),
        ({"targets": [[1, 2]]}, "a row for each sequence; got \\(1, 2\\)"),
        ({"targets": [[1], [2]]}, "2 or more"),
        ({"targets": [[[1, 2]]]}, "1 or 2 dimensions"),
        ({"targets": 1}, "1 or 2 dimensions"),
        ({"targets": [[1, 4]] * 2}, "target 4 is out of bounds for 4 classes"),
        ({"input_lengths": [6.0, 6.0]}, "input_lengths must be integral"),
        ({"target_lengths": [True, True]}, "target_lengths must be integral"),
        ({"input_lengths": [6, -1]}, "input_lengths must be at least 0; got -1"),
        ({"target_lengths": [-2, 2]}, "target_lengths must be at least 0; got -2"),
        ({"input_lengths": [6, 7]}, "at most 6"),
        ({"input_lengths": [6]}, "one length for each of 2 sequences; got 1"),
        ({"blank": 4}, "blank must be in 0..3"),
        ({"reduction": "other"}, "reduction"),
    ],
)
def test_ctc_refuses(change, message):
    args = {"targets": [[1, 2], [2, 3]], "input_lengths": [6, 5], "target_lengths": [2, 2]}
    args |= change
    tensors = {k: clew.tensor(v) for k, v in args.items() if isinstance(v, list | int)}
    tensors.pop("blank", None)
    logp = clew.zeros(6, 2, 4).log_softmax(2)
    with pytest.raises((RuntimeError, IndexError, ValueError), match=message):
        F.ctc_loss(logp, **{**args, **tensors})


@pytest.mark.parametrize("shape", [(0, 2, 4), (6, 0, 4)])
def test_ctc_refuses_no_step_and_no_sequence(shape):
    lengths = [0] * shape[1]
    targets = clew.zeros(shape[1], 1, dtype=clew.int64)
    with pytest.raises(RuntimeError, match="a step and a sequence"):
        F.ctc_loss(clew.zeros(shape), targets, lengths, lengths)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_ctc_of_shapes_alone(reduction):
    logp = clew.zeros(6, 2, 4, device="meta", requires_grad=True)
    loss = F.ctc_loss(logp, t([[1, 2], [2, 3]]), [6, 5], [2, 2], reduction=reduction)
    assert loss.is_meta and loss.shape == ((2,) if reduction == "none" else ())
    loss.sum().backward()
    assert logp.grad.shape == logp.shape


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("strided", [False, True])
def test_ctc_gradients(dtype, strided):
    steps, batch, classes = 13, 5, 6
    x = clew.randn(batch, steps, classes, dtype=dtype) * 3
    logits = (x.transpose(0, 1) if strided else x.transpose(0, 1).contiguous()).requires_grad_()
    targets = clew.randint(1, classes, (batch, 5))
    # The last two have no alignment, and no step.
    args = targets, [13, 9, 12, 3, 0], [5, 4, 0, 5, 2]
    weight = clew.tensor([1.0, -2.0, 0.5, 3.0, 1.0], dtype=dtype)

    def of(logits):
        return F.ctc_loss(logits.log_softmax(2), *args, reduction="none", zero_infinity=True)

    (got,) = clew.autograd.grad((of(logits) * weight).sum(), logits)
    (composed,) = clew.autograd.grad((of(logits) * weight).sum(), logits, create_graph=True)
    assert composed.requires_grad and not got.requires_grad
    tolerance = 1e-5 if dtype == clew.float32 else 1e-12
    np.testing.assert_allclose(got.numpy(), composed.detach().numpy(), atol=tolerance)
    assert not got[:, 3:].any() and not got[9:, 1].any() and got[:, :3].any()
    if dtype == clew.float64 and not strided:
        assert clew.autograd.gradcheck(of, (logits,))
        assert clew.autograd.gradgradcheck(lambda z: of(z)[:2], (logits,))


def test_ctc_of_peaked_probabilities():
    # Every way is as unlikely as e^-4000, which no probability can hold.
    logits = clew.zeros(50, 1, 3, dtype=clew.float64)
    logits[:, :, 0] = 80.0
    logits.requires_grad_()
    loss = F.ctc_loss(logits.log_softmax(2), clew.ones(1, 20, dtype=clew.int64), [50], [20], 2)
    loss.backward()
    assert np.isfinite(loss.item()) and loss.item() > 190  # for each label
    np.testing.assert_allclose(logits.grad.sum(2).numpy(), 0, atol=1e-12)


def test_ctc_composed_and_native_agree():
    r = np.random.default_rng(5)
    for _ in range(20):
        steps, batch, classes, width = r.integers(1, 9), r.integers(1, 4), r.integers(2, 5), 7
        shape = int(steps), int(batch), int(classes)
        logp = clew.randn(shape, dtype=clew.float64).log_softmax(2)
        labels = clew.tensor(r.integers(0, 4, batch))
        lengths = clew.stack([clew.tensor(r.integers(0, steps + 1, batch)), labels])
        states = clew.tensor(r.integers(0, classes, (batch, width)))
        may_skip = clew.tensor(r.random((batch, width)) < 0.5)
        may_skip[:, :2] = False
        loss, _ = _ctc_loss(logp, states, may_skip, lengths)
        composed = _losses(logp, states, may_skip, lengths)
        np.testing.assert_allclose(loss.numpy(), composed.numpy(), rtol=1e-6, atol=1e-7)
        logp.requires_grad_()
        both = [
            form(logp, states, may_skip, lengths)[composed.isfinite()].sum()
            for form in (_twofold_losses, _losses)
        ]
        slopes = [clew.autograd.grad(x, logp)[0].numpy() for x in both]
        np.testing.assert_allclose(*slopes, atol=1e-7)
