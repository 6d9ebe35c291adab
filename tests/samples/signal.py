"""Windows, the short-time Fourier transform and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal as ss

from samples import COMPLEX, FLOATS_32_64, E, Op, Rng, S

WINDOW_ERRORS = [
    E(S(-1), ValueError, "non-negative"),
    E(S(4.0), TypeError, "must be int"),
    E(S(4, sym=1), TypeError, "must be bool"),
    E(S(10**13), MemoryError, "memory"),
]


def window(name: str, samples: list[S] | None = None, errors: Any = ()) -> Op:
    def reference(M: int, *, sym: bool = True, **more: Any) -> np.ndarray:
        more.setdefault("beta", 12.0) if name == "kaiser" else None
        more.setdefault("std", 1.0) if name == "gaussian" else None
        more.setdefault("alpha", 0.54) if name == "general_hamming" else None
        return np.asarray(getattr(ss.windows, name)(M, sym=sym, **more))

    plain = [S(0), S(1), S(1, sym=False), S(2), S(5), S(6, sym=False), S(7, sym=False)]
    return Op(
        f"signal.windows.{name}",
        reference,
        lambda r: [*(plain if name != "general_cosine" else []), *(samples or [])],
        dtypes=("float32",),
        grad=False,
        out=False,
        errors=[
            *(WINDOW_ERRORS if name != "general_cosine" else []),
            *errors,
        ],
    )


def old_window(name: str, samples: list[S] | None = None) -> Op:
    def reference(n: int, periodic: bool = True, *more: Any, **named: Any) -> np.ndarray:
        parameters = (*more, *named.values())
        if name == "hamming" and parameters:
            alpha, beta = parameters
            k = np.arange(n)
            return alpha - beta * np.cos(2 * np.pi * k / (n if periodic else n - 1))
        if name == "kaiser":
            parameters = parameters or (12.0,)
        return np.asarray(getattr(ss.windows, name)(n, *parameters, sym=not periodic))

    return Op(
        f"{name}_window",
        reference,
        lambda r: [
            S(0),
            S(1),
            S(2),
            S(5),
            S(6),
            S(5, False),
            S(6, periodic=False),
            *(samples or []),
        ],
        dtypes=("float32",),
        grad=False,
        out=False,
        errors=[
            E(S(-1), RuntimeError, "non-negative"),
            E(S(4.0), TypeError, "must be int"),
            E(S(4, 3), TypeError, "must be bool"),
            E(S(4, dtype=3), TypeError, "must be dtype"),
            E(S(10**13), MemoryError, "memory"),
        ],
    )


def frames_of(
    x: np.ndarray, n_fft: int, hop: int, window: np.ndarray, center: bool, mode: str
) -> np.ndarray:
    if center:
        width = [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        x = np.pad(x, width, {"replicate": "edge"}.get(mode, mode))
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    return np.stack([x[..., s : s + n_fft] * window for s in starts], axis=-2)


def stft(
    x: np.ndarray,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Any = None,
    return_complex: Any = None,
    align_to_window: Any = None,
) -> np.ndarray:
    width = win_length or n_fft
    factors = np.zeros(n_fft, np.result_type(1.0, 1.0 if window is None else window))
    left = (n_fft - width) // 2
    factors[left : left + width] = 1 if window is None else window
    if align_to_window:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(left, n_fft - width - left)])
    framed = frames_of(x, n_fft, hop_length or n_fft // 4, factors, center, pad_mode)
    whole = np.fft.fft(framed, axis=-1, norm="ortho" if normalized else "backward")
    if onesided or (onesided is None and not np.iscomplexobj(framed)):
        whole = whole[..., : n_fft // 2 + 1]
    whole = np.swapaxes(whole, -1, -2)
    return whole if return_complex is not False else np.stack([whole.real, whole.imag], -1)


def istft(
    X: np.ndarray,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: Any = None,
    length: Any = None,
    return_complex: bool = False,
) -> np.ndarray:
    width, hop = win_length or n_fft, hop_length or n_fft // 4
    factors = np.zeros(n_fft, np.result_type(1.0, 1.0 if window is None else window))
    left = (n_fft - width) // 2
    factors[left : left + width] = 1 if window is None else window
    norm = "ortho" if normalized else "backward"
    frames = np.swapaxes(X, -1, -2)
    if return_complex:
        frames = np.fft.ifft(frames, axis=-1, norm=norm)
    else:
        frames = np.fft.irfft(frames[..., : n_fft // 2 + 1], n_fft, norm=norm)
    count = frames.shape[-2]
    total = np.zeros((*X.shape[:-2], n_fft + hop * (count - 1)), np.result_type(frames, factors))
    weight = np.zeros(total.shape[-1], factors.dtype)
    for t in range(count):
        total[..., t * hop : t * hop + n_fft] += frames[..., t, :] * factors
        weight[t * hop : t * hop + n_fft] += factors**2
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total.shape[-1] - start
    signal = total[..., start:end] / weight[start:end]
    missing = 0 if length is None else length - signal.shape[-1]
    return np.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, missing)])


def stft_samples(r: Rng) -> list[S]:
    w = r.uniform((5,), 0.4, 1.0)
    return [
        S(r.normal((12,)), 8, window=r.uniform((8,), 0.4, 1.0), return_complex=True),
        S(r.normal((2, 11)), 7, 3, 5, w, return_complex=True),
        S(r.normal((2, 11)), 6, 2, 5, w, True, "replicate", True, False, True),
        S(r.normal((11,)), 6, 2, 5, w, False, return_complex=True),
        S(r.normal((11,)), 8, 3, 5, w, False, return_complex=True, align_to_window=True),
        S(r.normal((9,)), 4, window=np.ones(4, int), pad_mode="constant", return_complex=True),
        S(r.complex((2, 9)), 4, 1, window=np.ones(4, int)),
        S(r.complex((9,)), 5, 2, 3, r.complex((3,)), normalized=True),
    ]


def istft_samples(r: Rng) -> list[S]:
    # Windows of integers: the suite makes real arrays complex beside complex ones.
    return [
        S(r.complex((5, 4)), 8, window=r.integers(1, 5, (8,))),
        S(r.complex((2, 4, 3)), 7, 3, 5, r.integers(1, 5, (5,))),
        S(r.complex((2, 4, 3)), 6, 2, 6, np.ones(6, int), normalized=True, length=2),
        S(r.complex((6, 3)), 6, 2, 6, r.integers(1, 5, (6,)), onesided=False),
        S(r.complex((6, 3)), 6, 2, 6, r.complex((6,)), onesided=False, return_complex=True),
        S(r.complex((4, 3)), 6, 2, window=r.integers(1, 5, (6,)), center=False),
    ]


SIGNAL = np.ones(9)
ALIKE = np.ones(4, int)
SPECTRUM = np.ones((5, 4), np.complex128)

OPS = [
    window("bartlett"),
    window("blackman"),
    window("cosine"),
    window(
        "exponential",
        [S(5, tau=0.5), S(5, center=1.5, tau=2.0, sym=False)],
        [
            E(S(4, tau=0), ValueError, "positive"),
            E(S(4, center=1.0), ValueError, "symmetric"),
            E(S(4, center="a", sym=False), TypeError, "'center' must be float"),
        ],
    ),
    window("gaussian", [S(5, std=2.5)], [E(S(4, std=-1.0), ValueError, "positive")]),
    window(
        "general_cosine",
        [S(0, a=[1.0]), S(1, a=(0.2, 0.3)), S(5, a=[0.5, 0.3, 0.2]), S(6, a=[1, 2], sym=False)],
        [
            E(S(4, a=[]), ValueError, "at least one"),
            E(S(4, a=2.0), TypeError, "list or tuple"),
            E(S(4, a="ab"), TypeError, "must be float"),
            E(S(-1, a=[1.0]), ValueError, "non-negative"),
        ],
    ),
    window("general_hamming", [S(5, alpha=0.7)]),
    window("hamming"),
    window("hann"),
    window("kaiser", [S(6, beta=3.0), S(6, beta=0)], [E(S(4, beta=-1), ValueError, "negative")]),
    window("nuttall"),
    old_window("bartlett"),
    old_window("blackman"),
    old_window("hamming", [S(5, True, 0.7, 0.2), S(5, False, alpha=0.4, beta=0.6)]),
    old_window("hann"),
    old_window("kaiser", [S(5, True, 3.0), S(5, False, beta=5.0)]),
    Op(
        "stft",
        stft,
        stft_samples,
        dtypes=FLOATS_32_64 + COMPLEX,
        rtol=5.0,
        out=False,
        errors=[
            E(S([1.0], 4), TypeError, "must be Tensor"),
            E(S(SIGNAL, 4.0), TypeError, "'n_fft' must be int"),
            E(S(SIGNAL, 4), RuntimeError, "return_complex"),
            E(S(SIGNAL, 4, return_complex=True, align_to_window=True), RuntimeError, "center"),
            E(S(SIGNAL, 12, center=False, return_complex=True), RuntimeError, "n_fft <= 9"),
            E(S(SIGNAL, 4, 0, return_complex=True), RuntimeError, "hop_length > 0"),
            E(S(SIGNAL, 4, 1, 5, return_complex=True), RuntimeError, "win_length <= n_fft"),
            E(S(SIGNAL, 4, window=np.ones(3), return_complex=True), RuntimeError, "1D window"),
            E(S(SIGNAL[None, None], 4, return_complex=True), RuntimeError, "1D or 2D"),
            E(S(SIGNAL.astype(int), 4, return_complex=True), RuntimeError, "floating point"),
            E(
                S(SIGNAL.astype(np.float16), 4, window=ALIKE, return_complex=True),
                RuntimeError,
                "float16",
            ),
            E(S(SIGNAL + 0j, 4, window=ALIKE, onesided=True), RuntimeError, "onesided"),
        ],
    ),
    Op(
        "istft",
        istft,
        istft_samples,
        dtypes=COMPLEX,
        rtol=5.0,
        out=False,
        errors=[
            E(S([1.0], 4), TypeError, "must be Tensor"),
            E(S(SPECTRUM.real, 8), RuntimeError, "requires a complex input"),
            E(S(SPECTRUM[0], 8), RuntimeError, "2 or 3 dims"),
            E(S(SPECTRUM[:, :0], 8), RuntimeError, "empty"),
            E(S(SPECTRUM, 6), RuntimeError, "frequency dim"),
            E(S(SPECTRUM, 8, 7, 6), RuntimeError, "hop_length <= win_length"),
            E(S(SPECTRUM, 8, window=np.zeros(8)), RuntimeError, "must not be zero"),
            E(S(SPECTRUM, 8, window=np.ones(8), return_complex=True), RuntimeError, "onesided"),
            E(S(SPECTRUM, 8, window=np.ones(8) + 0j), RuntimeError, "complex windows"),
            E(S(SPECTRUM, 8, window=np.ones(8), length=0), RuntimeError, "nothing is left"),
            E(S(SPECTRUM, 8, length=1.5), TypeError, "'length' must be int"),
        ],
    ),
]
