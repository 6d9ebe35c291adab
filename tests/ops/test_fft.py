"""Discrete Fourier transforms beyond single calls: round trips, norms, precision, errors."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import clew
from clew import fft
from clew._ops import primitive as _primitive

RNG = np.random.default_rng(3)
PAIRS = [("fft", "ifft"), ("rfft", "irfft"), ("ihfft", "hfft")]


def real(*shape: int) -> clew.Tensor:
    return clew.tensor(RNG.standard_normal(shape))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [1, 2, 5, 6, 17])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p[0])
def test_round_trip(pair: tuple[str, str], n: int, norm: str | None):
    there, back = (getattr(fft, f) for f in pair)
    x = real(3, n)
    y = back(there(x, norm=norm), n=n, norm=norm)
    np.testing.assert_allclose((y.real if y.is_complex() else y).numpy(), x.numpy(), atol=1e-13)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p[0])
def test_round_trip_of_grids(pair: tuple[str, str]):
    x = real(3, 4, 5)
    for suffix, shape in (("2", (4, 5)), ("n", (3, 4, 5))):
        there, back = (getattr(fft, f + suffix) for f in pair)
        y = back(there(x, norm="ortho"), s=shape, norm="ortho")
        np.testing.assert_allclose((y.real if y.is_complex() else y).numpy(), x.numpy(), atol=1e-13)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_ortho_is_between_the_others(name: str):
    f = getattr(fft, name)
    x = real(8)
    b, o, w = (f(x, 8, norm=norm) for norm in ("backward", "ortho", "forward"))
    ratio = 1 / np.sqrt(8) if name in ("fft", "rfft", "hfft") else np.sqrt(8)
    np.testing.assert_allclose(o.numpy(), (b * ratio).numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(w.numpy(), (o * ratio).numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["fft", "ifft", "fftn", "fft2"])
def test_parseval_gradient(name: str):
    """The orthonormal transform keeps lengths, so the gradient of |X|^2 is 2 x."""
    x = real(4, 5).requires_grad_()
    (getattr(fft, name)(x, norm="ortho").abs() ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy(), rtol=1e-12)


def test_single_precision_stays():
    x = clew.ones(4)
    assert fft.fft(x).dtype is clew.complex64
    assert fft.rfft(x).dtype is clew.complex64
    assert fft.irfft(fft.rfft(x)).dtype is clew.float32
    assert fft.fft(clew.tensor([1, 2])).dtype is clew.complex64
    assert fft.hfft(clew.tensor([True, False])).dtype is clew.float32


def test_integers_become_the_default_dtype():
    clew.set_default_dtype(clew.float64)
    try:
        assert fft.rfft(clew.tensor([1, 2])).dtype is clew.complex128
        assert fft.fftfreq(3).dtype is clew.float64
    finally:
        clew.set_default_dtype(clew.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "fftn", "hfft2"])
def test_half_raises(name: str, dtype: str):
    with pytest.raises(RuntimeError, match=f"unsupported dtype {dtype}"):
        getattr(fft, name)(clew.ones(2, 4, dtype=getattr(clew, dtype)))


@pytest.mark.parametrize("name", ["rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn"])
def test_real_transforms_refuse_complex_input(name: str):
    with pytest.raises(RuntimeError, match="expects a real input"):
        getattr(fft, name)(clew.ones(2, 2, dtype=clew.complex64))


def test_no_dims():
    x = clew.tensor([1.0, 2.0])
    y = fft.fftn(x, dim=())
    assert y.dtype is clew.complex64 and y.real.tolist() == [1.0, 2.0]
    assert fft.fftn(clew.tensor(3.0)).item() == 3
    z = clew.tensor([1j])
    assert fft.ifftn(z, dim=()).data_ptr() != z.data_ptr()
    for name in ("rfftn", "irfftn", "hfftn", "ihfftn"):
        with pytest.raises(RuntimeError, match="at least one axis"):
            getattr(fft, name)(x, dim=())


def test_out():
    x = clew.ones(4)
    out = clew.empty(0, dtype=clew.complex128)
    assert fft.fft(x, out=out) is out and out.real.tolist() == [4, 0, 0, 0]
    with pytest.raises(RuntimeError, match="complex output"):
        fft.fft(x, out=clew.empty(0))
    with pytest.raises(RuntimeError, match="floating point output"):
        fft.irfft(x, out=clew.empty(0, dtype=clew.complex64))
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        fft.fft(x.requires_grad_(), out=out)


def test_empty_transforms_raise():
    with pytest.raises(RuntimeError, match="data points"):
        fft.fft(clew.ones(2, 0))
    with pytest.raises(RuntimeError, match="data points"):
        fft.irfft(clew.ones(2, 1))
    assert fft.fft(clew.ones(2, 0), n=3).tolist() == [[0, 0, 0]] * 2


def test_an_absurd_length_raises():
    for n in (10**15, 10**30):
        with pytest.raises((RuntimeError, OverflowError, TypeError)):
            fft.fft(clew.ones(2), n=n)


def test_symmetric_impulse_in_the_spectrum_of_shifted():
    x = real(2, 5)
    assert clew.equal(fft.ifftshift(fft.fftshift(x)), x)
    assert fft.fftshift(fft.fftfreq(5)).tolist() == sorted(fft.fftfreq(5).tolist())


def test_without_scipy(monkeypatch):
    """NumPy gives the same values and dtypes."""
    x = clew.tensor(RNG.standard_normal((3, 4, 5)), dtype=clew.float32)
    calls = [
        lambda: fft.fftn(x),
        lambda: fft.ifft(x, norm="forward"),
        lambda: fft.rfftn(x, s=(5, 6), norm="ortho"),
        lambda: fft.irfft2(x, s=(3, 7)),
        lambda: fft.hfftn(x),
    ]
    want = [f() for f in calls]
    monkeypatch.setattr(_primitive, "_scipy", {})  # what was loaded before
    monkeypatch.setitem(sys.modules, "scipy.fft", None)
    for f, w in zip(calls, want):
        got = f()
        assert got.dtype is w.dtype
        np.testing.assert_allclose(got.numpy(), w.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_fft, hop, width", [(8, 2, 8), (7, 2, 5), (16, 4, 10), (6, 3, 6)])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("onesided", [False, True])
def test_istft_inverts_stft(n_fft: int, hop: int, width: int, normalized: bool, onesided: bool):
    x = real(2, 41)
    window = clew.hamming_window(width, dtype=clew.float64)
    same = {"window": window, "normalized": normalized, "onesided": onesided}
    spectra = clew.stft(x, n_fft, hop, width, return_complex=True, **same)
    frequencies = n_fft // 2 + 1 if onesided else n_fft
    assert spectra.shape == (2, frequencies, 1 + (41 + n_fft // 2 * 2 - n_fft) // hop)
    kept = spectra.istft(n_fft, hop, width, **same)
    back = clew.istft(spectra, n_fft, hop, width, length=kept.shape[1], **same)
    np.testing.assert_allclose(kept.numpy(), x[:, : kept.shape[1]].numpy(), atol=1e-12)
    np.testing.assert_allclose(back.numpy(), kept.numpy(), atol=1e-12)


def test_istft_of_complex_signals():
    x = clew.complex(real(30), real(30))
    window = clew.hann_window(8, dtype=clew.float64)
    spectra = x.stft(8, 2, window=window)
    assert spectra.shape == (8, 16) and spectra.is_complex()
    back = spectra.istft(8, 2, window=window, return_complex=True, length=30)
    np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)


def test_stft_as_real_warns_and_has_the_parts():
    x, w = real(16), clew.ones(4, dtype=clew.float64)
    whole = clew.stft(x, 4, window=w, return_complex=True)
    with pytest.warns(UserWarning, match="deprecated"):
        parts = clew.stft(x, 4, window=w, return_complex=False)
    assert clew.equal(parts, clew.view_as_real(whole))


def test_no_window_warns_and_counts_all_alike():
    x = real(16)
    want = clew.stft(x, 4, window=clew.ones(4), return_complex=True)
    with pytest.warns(UserWarning, match="stft: no window"):
        assert clew.equal(clew.stft(x, 4, return_complex=True), want)
    with pytest.warns(UserWarning, match="istft: no window"):
        clew.istft(want, 4)


@pytest.mark.parametrize("width", [0, 5])
def test_stft_refuses_widths_outside_of_the_transform(width):
    with pytest.raises(RuntimeError, match="0 < win_length <= n_fft=4"):
        clew.stft(clew.ones(16), 4, 2, width, return_complex=True)


def test_one_dim_by_two_names_is_refused():
    with pytest.raises(RuntimeError, match="dims must be unique"):
        clew.fft.fft2(clew.ones(3, 3), dim=(0, -2))


def test_istft_longer_than_the_signal():
    x, w = real(16), clew.ones(4, dtype=clew.float64)
    spectra = clew.stft(x, 4, window=w, return_complex=True)
    with pytest.warns(UserWarning, match="zeros follow"):
        y = clew.istft(spectra, 4, window=w, length=30)
    np.testing.assert_allclose(y[:16].numpy(), x.numpy(), atol=1e-12)
    assert y.shape == (30,) and not y[18:].any()


def test_stft_promotes_with_the_window():
    x = clew.ones(8)
    assert clew.stft(x, 4, window=clew.ones(4, dtype=clew.float64), return_complex=True).dtype is (
        clew.complex128
    )
    assert clew.stft(x, 4, window=clew.ones(4, dtype=clew.int64), return_complex=True).dtype is (
        clew.complex64
    )


def test_windows_take_dtypes_and_gradients():
    assert clew.hann_window(4, dtype=clew.float16).dtype is clew.float16
    assert clew.hann_window(4, requires_grad=True).requires_grad
    assert clew.signal.windows.hann(4, dtype=clew.float64).dtype is clew.float64
    with pytest.raises(ValueError, match="float32 or float64"):
        clew.signal.windows.hann(4, dtype=clew.float16)
    with pytest.raises(RuntimeError, match="floating point"):
        clew.hann_window(4, dtype=clew.int64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_long_real_inputs(dtype: str, threads: int):
    # From some size on the spectrum of a real input is half of one, mirrored.
    a = np.random.default_rng(0).standard_normal((300, 301)).astype(dtype)
    x = clew.tensor(a, requires_grad=True)
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    before = clew.get_num_threads()
    try:
        clew.set_num_threads(threads)
        results = {
            name: getattr(clew.fft, name)(x, **arguments)
            for name, arguments in {
                "fft": {},
                "ifft": {"dim": 0},
                "fft2": {"norm": "ortho"},
                "ifft2": {},
                "rfft2": {},
                "fftn": {"s": (310, 250)},
            }.items()
        }
    finally:
        clew.set_num_threads(before)
    wants = {
        "fft": np.fft.fft(a),
        "ifft": np.fft.ifft(a, axis=0),
        "fft2": np.fft.fft2(a, norm="ortho"),
        "ifft2": np.fft.ifft2(a),
        "rfft2": np.fft.rfft2(a),
        "fftn": np.fft.fftn(a, s=(310, 250), axes=(0, 1)),
    }
    for name, got in results.items():
        assert got.dtype is x.dtype.to_complex()
        assert got.is_contiguous()
        np.testing.assert_allclose(got.detach().numpy(), wants[name], rtol=0, atol=tolerance)
    # sum |X|^2 = n sum x^2, whose gradient is 2 n x.
    results["fft"].abs().square().sum().backward()
    assert x.grad is not None and x.grad.dtype is x.dtype
    np.testing.assert_allclose(x.grad.numpy(), 2 * 301 * a, rtol=1e-3, atol=tolerance)
    np.testing.assert_array_equal(x.detach().numpy(), a)


def test_results_of_transforms_are_their_own():
    x = clew.ones(300, 300)
    first = clew.fft.fft(x)
    kept = first.clone()
    clew.fft.fft(x).zero_()
    clew.fft.ifft(first)
    assert first.equal(kept) and x.equal(clew.ones(300, 300))


def test_first_used_by_many_threads_at_once():
    pytest.importorskip("scipy.fft")
    # Some of them come while the first one still imports SciPy.
    code = """
import threading, time, clew
failures = []
def run(k):
    time.sleep(0.008 * k)
    try:
        clew.fft.fft(clew.randn(16, 16))
    except Exception as e:
        failures.append(e)
threads = [threading.Thread(target=run, args=(k,)) for k in range(16)]
for t in threads: t.start()
for t in threads: t.join()
assert not failures, failures
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"])
def test_two_dims_are_named_or_left_out(name: str) -> None:
    function = getattr(clew.fft, name)
    for s in (None, (2, 2)):
        with pytest.raises(TypeError, match="dim"):
            function(clew.ones(2, 3, 4), s, None)
    assert getattr(clew.fft, name[:-1] + "n")(clew.ones(2, 3), None, None).ndim == 2
