"""vmap of functions that look at values, and of numbers that differ from sample to sample."""

from __future__ import annotations

import pytest

import clew
from clew.nn import functional as F


def test_ends_of_ranges_differ_from_sample_to_sample():
    a, b = clew.tensor([0.0, 0.5]), clew.tensor([1.0, 2.0])
    made = clew.vmap(lambda a, b: clew.linspace(a, b, 3))(a, b)
    assert made.tolist() == [[0.0, 0.5, 1.0], [0.5, 1.25, 2.0]]
    assert clew.vmap(lambda a: clew.linspace(a, 1, 2))(a).tolist() == [[0.0, 1.0], [0.5, 1.0]]
    assert clew.vmap(lambda a: clew.linspace(1, a, 1))(a).tolist() == [[1.0], [1.0]]
    whole = clew.vmap(lambda a: clew.linspace(a, 4, 3, dtype=clew.int64))(clew.tensor([0, 2]))
    assert whole.dtype is clew.int64 and whole.tolist() == [[0, 2, 4], [2, 3, 4]]
    made = clew.vmap(lambda b: clew.logspace(0, b, 2, base=2.0))(b)
    assert made.tolist() == [[1.0, 2.0], [1.0, 4.0]]


def test_histograms_of_samples():
    x = clew.tensor([[0.0, 0.5], [1.0, 3.0]])
    counts, edges = clew.vmap(lambda x: clew.histogram(x, 2))(x)
    assert counts.tolist() == [[1, 1], [1, 1]] and edges.tolist() == [[0, 0.25, 0.5], [1, 2, 3]]
    bounds = clew.tensor([0.0, 1.0, 2.0])
    counts, _ = clew.vmap(lambda x: clew.histogram(x, bounds))(x)
    assert counts.tolist() == [[2, 0], [0, 1]]


def test_ctc_loss_of_samples_with_labels_of_their_own():
    log_probs = clew.randn(3, 4, 2, 5).log_softmax(-1).requires_grad_()
    labels = clew.randint(1, 5, (3, 2, 2))
    lengths = clew.tensor([[4, 3], [4, 4], [3, 4]])

    def loss(p, t, n):
        return F.ctc_loss(p, t, n, (2, 1))

    made = clew.vmap(loss)(log_probs, labels, lengths)
    want = clew.stack([loss(*each) for each in zip(log_probs, labels, lengths)])
    clew.testing.assert_close(made, want)
    g, h = (clew.autograd.grad(t.sum(), log_probs)[0] for t in (made, want))
    clew.testing.assert_close(g, h)
    single = clew.vmap(lambda p, t: F.ctc_loss(p, t, 4, 2))(log_probs[:, :, 0], labels[:, 0])
    assert single.shape == (3,)


@pytest.mark.parametrize("name", ["input", "target"])
@pytest.mark.parametrize("wrong", [1.5, -0.5, float("nan")])
def test_probabilities_are_checked_with_and_without_vmap(name, wrong):
    x, y = clew.tensor([[0.25], [0.5]]), clew.tensor([[1.0], [0.5]])
    (x if name == "input" else y)[1] = wrong
    with pytest.raises(RuntimeError, match=f"elements of {name} should be between 0 and 1"):
        F.binary_cross_entropy(x, y)
    with pytest.raises(RuntimeError, match=f"elements of {name} should be between 0 and 1"):
        clew.vmap(F.binary_cross_entropy)(x, y)
    assert clew.vmap(F.binary_cross_entropy)(x[:1], y[:1]).shape == (1,)
