"""Padding that continues an image beyond its borders, for all layouts and widths of elements.

N images, C channels, D x H x W points.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import clew
from clew.nn import functional as F

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
DTYPES = ["uint8", "int16", "float16", "float32", "float64", "complex128"]


def by_numpy(x: np.ndarray, pad: list[int], mode: str) -> np.ndarray:
    """Cuts first where circular padding does, and last where the others do."""
    k = len(pad) // 2
    width = [(0, 0)] * (x.ndim - k) + [(pad[2 * i], pad[2 * i + 1]) for i in reversed(range(k))]
    kept = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(width, x.shape))
    if mode == "circular":
        x = x[kept]
    added = [(max(a, 0), max(b, 0)) for a, b in width]
    out: np.ndarray = np.pad(x, added, mode=MODES[mode])  # type: ignore[call-overload]
    if mode == "circular":
        return out
    return out[tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(width, out.shape))]


def drawn(r: np.random.Generator, mode: str, dims: int, ndim: int) -> tuple[list[int], list[int]]:
    """Sizes and a pad that the mode takes."""
    sizes = [int(r.integers(1, 4)) for _ in range(ndim - dims)]
    sizes += [int(r.choice([2, 3, 5, 8, 17, 40])) for _ in range(dims)]
    pad = []
    for i in range(dims):
        n = sizes[ndim - 1 - i]
        most = {"reflect": n - 1, "replicate": n + 3, "circular": n // 2}[mode]
        left = int(r.integers(-(n // 2), most + 1))
        right = int(r.integers(-((n - 1) // 2), most + 1))
        if mode == "circular" and min(left, right) < 0:  # what is cut off is not repeated
            left, right = max(left, 0), max(right, 0)
        pad += [left, right]
    return sizes, pad


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_values(mode: str, dims: int) -> None:
    r = np.random.default_rng(dims)
    for trial in range(60):
        ndim = dims + 1 + trial % 2
        sizes, pad = drawn(r, mode, dims, ndim)
        dtype = DTYPES[trial % len(DTYPES)]
        values = (100 * r.normal(size=sizes)).astype(dtype)
        x = clew.tensor(values)
        order = list(r.permutation(ndim))
        layouts = [x, x.permute(order).contiguous().permute(list(np.argsort(order)))]
        if ndim in (4, 5):
            last = clew.channels_last if ndim == 4 else clew.channels_last_3d
            layouts.append(x.to(memory_format=last))
        wide = clew.empty(*sizes[:-1], 2 * sizes[-1], dtype=x.dtype)
        wide[..., ::2] = x
        layouts.append(wide[..., ::2])
        for given in layouts:
            out = F.pad(given, pad, mode=mode)
            assert np.array_equal(out.numpy(), by_numpy(values, pad, mode)), (sizes, pad, dtype)


@pytest.mark.parametrize("mode", MODES)
def test_many_lines(mode: str) -> None:
    x = clew.randn(3, 130, 33, 35)
    expected = by_numpy(x.numpy(), [3, 2, 1, 4], mode)
    for given in (x, x.to(memory_format=clew.channels_last)):
        assert np.array_equal(F.pad(given, (3, 2, 1, 4), mode=mode).numpy(), expected)


@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode: str) -> None:
    r = np.random.default_rng(3)
    for dims in (1, 2, 3):
        for _ in range(3):
            sizes, pad = drawn(r, mode, dims, dims + 1)
            sizes[-dims:] = [min(n, 5) for n in sizes[-dims:]]
            pad = [min(p, 1) for p in pad]
            pad = [p if p > 0 else 0 for p in pad] if mode == "reflect" else [abs(p) for p in pad]
            x = clew.randn(*sizes, dtype=clew.float64, requires_grad=True)
            padded = partial(F.pad, pad=pad, mode=mode)
            assert clew.autograd.gradcheck(padded, x)
            assert clew.autograd.gradgradcheck(padded, x)


def test_an_unbatched_volume_is_padded_in_its_own_dimensions() -> None:
    # Channels last would be told of the depth here.
    x = clew.randn(2, 3, 4, 5).to(memory_format=clew.channels_last)
    out = F.pad(x, (1, 1, 1, 1, 1, 1), mode="replicate")
    assert out.shape == (2, 5, 6, 7)
    assert np.array_equal(out.numpy(), by_numpy(x.numpy(), [1] * 6, "replicate"))


@pytest.mark.parametrize("mode", MODES)
def test_vmap_over_any_dim(mode: str) -> None:
    x = clew.randn(3, 2, 6, 7, 4)
    for dim in range(5):
        each = clew.stack([F.pad(p, (1, 2, 2, 1), mode=mode) for p in x.unbind(dim)])
        mapped = clew.vmap(lambda p: F.pad(p, (1, 2, 2, 1), mode=mode), in_dims=dim)(x)
        assert clew.equal(mapped, each)


def test_no_samples() -> None:
    x = clew.zeros(0, 2, 3, 3, requires_grad=True)
    out = F.pad(x, (1, 1, 1, 1), mode="reflect")
    assert out.shape == (0, 2, 5, 5)
    out.sum().backward()
    assert x.grad is not None and x.grad.shape == x.shape
