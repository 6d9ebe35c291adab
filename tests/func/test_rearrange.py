"""rearrange against NumPy's reshape and transpose; batch norms without running statistics."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import nn
from clew.func import rearrange, replace_all_batch_norm_modules_, vmap

X = np.arange(2 * 4 * 6 * 3).reshape(2, 4, 6, 3)


@pytest.mark.parametrize(
    ("pattern", "sizes", "want"),
    [
        ("b h w c -> b c h w", {}, X.transpose(0, 3, 1, 2)),
        ("b h w c -> (b h) w c", {}, X.reshape(8, 6, 3)),
        ("b h w c -> h (b w) c", {}, X.transpose(1, 0, 2, 3).reshape(4, 12, 3)),
        ("b (h p) w c -> b h w (p c)", {"p": 2}, None),
        ("b h w c -> (b h w c)", {}, X.reshape(-1)),
        ("... c -> c ...", {}, X.transpose(3, 0, 1, 2)),
        ("b ... c -> b c ...", {}, X.transpose(0, 3, 1, 2)),
        ("b ... -> ... b", {}, X.transpose(1, 2, 3, 0)),
        ("b h w c -> b 1 h w () c", {}, X.reshape(2, 1, 4, 6, 1, 3)),
        ("b h (w q r) c -> b r q (h w) c", {"q": 3, "r": 1}, None),
    ],
)
def test_patterns(pattern, sizes, want):
    if "p" in sizes:
        want = X.reshape(2, 2, 2, 6, 3).transpose(0, 1, 3, 2, 4).reshape(2, 2, 6, 6)
    if "q" in sizes:
        want = X.reshape(2, 4, 2, 3, 1, 3).transpose(0, 4, 3, 1, 2, 5).reshape(2, 1, 3, 8, 3)
    got = rearrange(clew.from_numpy(X), pattern, **sizes)
    np.testing.assert_array_equal(got.numpy(), want)


def test_lists_views_and_gradients():
    parts = [clew.ones(2, 3) * k for k in range(4)]
    assert rearrange(parts, "n a b -> a (n b)").shape == (2, 12)
    x = clew.ones(2, 3, requires_grad=True)
    y = rearrange(x, "a b -> b a")
    assert y._base is x
    (y * clew.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    z = clew.ones(5, 1, 4)
    assert rearrange(z, "a 1 b -> b a").shape == (4, 5)
    out = vmap(lambda t: rearrange(t, "a b -> (b a)"))(clew.arange(12).reshape(2, 2, 3))
    assert out.tolist() == [[0, 3, 1, 4, 2, 5], [6, 9, 7, 10, 8, 11]]


@pytest.mark.parametrize(
    ("pattern", "sizes"),
    [
        ("a b", {}),
        ("a b -> a", {}),
        ("a a -> a a", {}),
        ("a b c -> a b c", {}),
        ("a (b c) -> a b c", {}),
        ("a (b c) -> a b c", {"c": 4}),
        ("a (b c) -> a b c", {"c": 0}),
        ("a b -> b a", {"c": 1}),
        ("a b -> b a", {"a": 5}),
        ("(a b -> a b", {}),
        ("a (...) -> a ...", {}),
        ("a b* -> a b", {}),
    ],
)
def test_patterns_that_do_not_fit(pattern, sizes):
    with pytest.raises(ValueError, match="rearrange"):
        rearrange(clew.ones(2, 3), pattern, **sizes)


def test_batch_norms_lose_their_running_statistics():
    net = nn.Sequential(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm1d(3)))
    assert replace_all_batch_norm_modules_(net) is net
    for norm in (net[1], net[2][0]):
        assert norm.running_mean is None and norm.running_var is None
        assert norm.num_batches_tracked is None and not norm.track_running_stats
    x = clew.randn(4, 2, 5)
    assert clew.equal(net(x), net.eval()(x))
