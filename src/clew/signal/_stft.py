"""The short-time Fourier transform and its inverse."""

from __future__ import annotations

import warnings
from typing import Any

from clew import _C
from clew._base.arguments import need_bools, need_int
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level
from clew._C import Tensor
from clew._ops.primitive import loops_in_vmap
from clew.fft._core import to_complex, to_half, to_real

__all__ = ["istft", "stft"]

_NO_WINDOW = (
    "no window was given, so that all samples of a frame count alike, which leaks between "
    "frequencies; pass a window such as hann_window(win_length), or ones(win_length) for this one"
)


@asks_classes
@in_float32
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The Fourier transforms of overlapping frames of a signal:
    X[f, t] = sum_k window[k] input[t hop_length + k] exp(-2 pi i f k / n_fft).

    Args:
        input: a signal, or a batch of them: [L] or [B, L].
        n_fft: length of a frame's transform.
        hop_length: from one frame's start to the next; n_fft // 4 when not given.
        win_length: length of the window; n_fft when not given.
        window: win_length factors; zeros are put around them up to n_fft. All 1 when not given.
        center: pad the signal so that frame t is centered at t * hop_length; otherwise it begins
            there.
        pad_mode: how the signal is padded, as in nn.functional.pad.
        normalized: divide by sqrt(n_fft).
        onesided: keep the frequencies up to n_fft // 2 only; True for real input and window when
            not given.
        return_complex: a complex result; otherwise real and imaginary parts are the last dim.
            Must be given for real input and window.
        align_to_window: without center: it is the window, not the frame, that begins at
            t * hop_length.

    Returns:
        A tensor [frequencies, frames], with the batch dim in front.

    Raises:
        RuntimeError: the lengths do not fit, or return_complex is missing.

    Example:
        >>> clew.stft(clew.ones(4), 4, 2, window=clew.ones(4), return_complex=True).real
        tensor([[4., 4., 4.],
                [0., 0., 0.],
                [0., 0., 0.]])
    """
    need_bools("stft", normalized=normalized)
    if onesided is not None:
        need_bools("stft", onesided=onesided)
    if return_complex is not None:
        need_bools("stft", return_complex=return_complex)
    if align_to_window is not None:
        need_bools("stft", align_to_window=align_to_window)
    name = "stft"
    _need_tensors(name, input, window)
    hop, width = _lengths(name, n_fft, hop_length, win_length)
    if center and align_to_window is not None:
        raise RuntimeError("stft: align_to_window should only be set when center=False")
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not is_complex:
            raise RuntimeError("stft: requires return_complex to be given for real inputs")
        return_complex = True
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"stft: expected a tensor of floating point or complex values; got {input.dtype.name}"
        )
    if input.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor; got {list(input.shape)}")
    signal = input if input.ndim == 2 else input.unsqueeze(0)
    pad = _C.functions["nn.functional.pad"]
    if center and n_fft > 1:
        signal = pad(signal.unsqueeze(0), (n_fft // 2, n_fft // 2), pad_mode).squeeze(0)
    length = signal.shape[1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {length}; got n_fft={n_fft}")
    _check_width(name, width, n_fft)
    if hop < 1:
        raise RuntimeError(f"stft: expected hop_length > 0; got {hop}")
    if window is None:
        warnings.warn(f"stft: {_NO_WINDOW}", stacklevel=user_level())
    factors = _framed_window(name, window, input, width, n_fft)
    if align_to_window:
        before = (n_fft - width) // 2
        signal = pad(signal, (before, n_fft - width - before))
    if onesided is None:
        onesided = not is_complex
    elif onesided and is_complex:
        raise RuntimeError("stft: cannot have onesided output if window or input is complex")
    frames = signal.unfold(1, n_fft, hop)
    if factors is not None:
        frames = frames * factors
    transform = to_half if onesided else to_complex
    norm = "ortho" if normalized else "backward"
    spectra = transform(name, frames, None, -1, norm, None, forward=True, grid=False)
    spectra = spectra.transpose(1, 2)
    if input.ndim == 1:
        spectra = spectra.squeeze(0)
    if return_complex:
        return spectra
    warnings.warn(
        "stft: return_complex=False is deprecated; use view_as_real on the complex result",
        stacklevel=user_level(),
    )
    return _C.functions["view_as_real"](spectra)


@asks_classes
@loops_in_vmap
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose short-time Fourier transform is nearest to input: the frames' inverse
    transforms, weighted by the window and added where they overlap, over the sum of its squares.

    Args:
        input: what stft gave, complex: [frequencies, frames] or [B, frequencies, frames].
        n_fft, hop_length, win_length, window, center, normalized: as given to stft.
        onesided: whether input has the frequencies up to n_fft // 2 only; found by its size when
            not given.
        length: how much of the signal to return, with zeros where it is shorter. When not given,
            what center=True added is cut off at both ends.
        return_complex: a complex signal, from two-sided input.

    Returns:
        A tensor [length], with the batch dim in front.

    Raises:
        RuntimeError: the sizes do not fit, or there are samples at which all windows are zero.

    Example:
        >>> x, w = clew.arange(8.0), clew.hann_window(4)
        >>> clew.istft(clew.stft(x, 4, 2, window=w, return_complex=True), 4, 2, window=w).round()
        tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    need_bools("istft", center=center, normalized=normalized, return_complex=return_complex)
    if onesided is not None:
        need_bools("istft", onesided=onesided)
    name = "istft"
    _need_tensors(name, input, window)
    hop, width = _lengths(name, n_fft, hop_length, win_length)
    if length is not None:
        length = need_int(name, "length", length)
    spectra, onesided = _spectra(input, n_fft, onesided)
    _check_width(name, width, n_fft)
    if not 0 < hop <= width:
        raise RuntimeError(f"istft: expected 0 < hop_length <= win_length; got {hop} and {width}")
    if window is None:
        warnings.warn(f"istft: {_NO_WINDOW}", stacklevel=user_level())
    factors = _framed_window(name, window, input, width, n_fft)
    frames = _frames(spectra, n_fft, normalized, onesided, return_complex, window)
    if factors is None:
        factors = frames.new_ones(n_fft, dtype=frames.dtype.to_real())
    count = spectra.shape[1]
    total = n_fft + hop * (count - 1)
    add = _C.ops._unfold_backward
    signal = add(frames * factors, (frames.shape[0], total), 1, n_fft, hop)
    weight = add((factors * factors).expand(1, count, n_fft), (1, total), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + length
    kept = min(end, total) - start
    if kept < 1:
        raise RuntimeError(
            f"istft: nothing is left of {total} samples with center={center}, length={length}"
        )
    signal, weight = signal.narrow(1, start, kept), weight.narrow(1, start, kept)
    if weight.device.type != "meta" and bool((weight.detach().abs() < 1e-11).any()):
        raise RuntimeError(
            "istft: the overlapping windows must not be zero anywhere; choose another window, "
            "a smaller hop_length, or center=True"
        )
    signal = signal / weight
    if end > total:
        warnings.warn(
            f"istft: the signal has {kept} samples, fewer than length={length}; zeros follow",
            stacklevel=user_level(),
        )
        signal = _C.functions["nn.functional.pad"](signal, (0, end - total))
    return signal if input.ndim == 3 else signal.squeeze(0)


def _spectra(input: Tensor, n_fft: int, onesided: bool | None) -> tuple[Tensor, bool]:
    """What istft is given as [B, frames, frequencies], and whether these go up to n_fft // 2."""
    if not input.is_complex():
        raise RuntimeError(
            f"istft: requires a complex input, the output of stft with return_complex=True; got "
            f"{input.dtype.name}"
        )
    if input.ndim not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dims; got {list(input.shape)}")
    if input.numel() == 0:
        raise RuntimeError(f"istft: input tensor cannot be empty; got {list(input.shape)}")
    spectra = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    size = spectra.shape[2]
    if onesided is None:
        onesided = size != n_fft
    expected = n_fft // 2 + 1 if onesided else n_fft
    if size != expected:
        raise RuntimeError(
            f"istft: expected the frequency dim to have {expected} elements with n_fft={n_fft} "
            f"and onesided={onesided}; got {size}"
        )
    return spectra, onesided


def _frames(
    spectra: Tensor,
    n_fft: int,
    normalized: bool,
    onesided: bool,
    return_complex: bool,
    window: Tensor | None,
) -> Tensor:
    """The inverse transforms of istft's frames."""
    norm = "ortho" if normalized else "backward"
    options: Any = {"forward": False, "grid": False}
    if return_complex:
        if onesided:
            raise RuntimeError("istft: cannot have onesided input if the output is complex")
        return to_complex("istft", spectra, None, -1, norm, None, **options)
    if window is not None and window.is_complex():
        raise RuntimeError("istft: complex windows are incompatible with return_complex=False")
    return to_real("istft", spectra, n_fft, -1, norm, None, **options)


def _need_tensors(name: str, input: Any, window: Any) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
    if window is not None and not isinstance(window, Tensor):
        raise TypeError(f"{name}(): argument 'window' must be Tensor, not {type(window).__name__}")


def _lengths(name: str, n_fft: Any, hop: Any, width: Any) -> tuple[int, int]:
    """hop_length and win_length, by default a quarter and the whole of n_fft."""
    n_fft = need_int(name, "n_fft", n_fft)
    return (
        n_fft // 4 if hop is None else need_int(name, "hop_length", hop),
        n_fft if width is None else need_int(name, "win_length", width),
    )


def _check_width(name: str, width: int, n_fft: int) -> None:
    if not 0 < width <= n_fft:
        raise RuntimeError(
            f"{name}: expected 0 < win_length <= n_fft={n_fft}; got win_length={width}"
        )


def _framed_window(
    name: str, window: Tensor | None, input: Tensor, width: int, n_fft: int
) -> Tensor | None:
    """The window with zeros on both sides up to n_fft; None when all factors are 1."""
    if window is None:
        if width == n_fft:
            return None
        window = input.new_ones(width, dtype=input.dtype.to_real())
    if window.device != input.device:
        raise RuntimeError(
            f"{name}: input and window must be on the same device; got {input.device} and "
            f"{window.device}"
        )
    if window.ndim != 1 or window.shape[0] != width:
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of win_length={width} elements; got "
            f"{list(window.shape)}"
        )
    before = (n_fft - width) // 2
    after = n_fft - width - before
    return _C.functions["nn.functional.pad"](window, (before, after)) if before + after else window
