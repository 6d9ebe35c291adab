"""Sizes, strides, offsets and counts whose products or sums leave int64: refused, at once."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import clew
import clew.nn.functional as F

far = 2**62
most = 2**63 - 1


def zeros(*sizes: int, device: str = "cpu") -> clew.Tensor:
    """One zero that is seen everywhere."""
    return clew.zeros((), device=device).expand(*sizes)


REFUSED = {
    "set_ sizes": lambda x: x.set_(x, 0, (far, 4), (1, 1)),
    "set_ strides": lambda x: x.set_(x, 0, (2,), (far,)),
    "set_ wraps around": lambda x: x.set_(x, 0, (3,), (far,)),
    "set_ bytes": lambda x: x.set_(x, 0, (2,), (2**60 - 1,)),
    "set_ offset": lambda x: x.set_(x, far, (2,), (1,)),
    "set_ offset of 2^61": lambda x: x.set_(x, 2**61, (2,), (1,)),
    "set_ last offset": lambda x: x.set_(x, most, (1,), (1,)),
    "set_ offset and reach": lambda x: x.set_(x, 2**60, (2,), (2**60,)),
    "set_ product": lambda x: x.set_(x, 0, (2**32, 2**32), (0, 0)),
    "set_ negative": lambda x: x.set_(x, -1, (2,), (1,)),
    "as_strided": lambda x: x.as_strided((3,), (far,)),
    "as_strided offset": lambda x: x.as_strided((2,), (1,), most),
    "as_strided_": lambda x: x.as_strided_((3,), (far,)),
    "expand": lambda x: x[:1].expand(far, 4),
    "resize_": lambda x: x.resize_(far, 4),
    "resize_ bytes": lambda x: x.resize_(2**61),
    "resize_ of a part": lambda x: x[2:].resize_(2**61 - 1),
    "resize_ beyond int64": lambda x: x[2:].resize_(most),
    "empty_strided": lambda x: clew.empty_strided((3,), (far,), device=x.device),
    "new_empty_strided": lambda x: x.new_empty_strided((3,), (far,)),
    "new_zeros": lambda x: x.new_zeros((far, 2)),
    "view": lambda x: x.view(2**32, 2**32, -1),
    "reshape": lambda x: x.reshape(far, 4),
    "repeat": lambda x: x.repeat(far),
    "repeat_interleave": lambda x: x.repeat_interleave(far),
    "tile": lambda x: x.tile((2**32, 2**32)),
    "pad": lambda x: F.pad(x, (most, 1)),
    "diag_embed": lambda x: clew.diag_embed(x, most),
    "cat": lambda x: clew.cat([x[:1].expand(far)] * 2),
    "unfold": lambda x: x.unfold(0, far, 1),
    "pool": lambda x: F.max_pool1d(x[None], 2, 1, 1, most),
    "conv": lambda x: F.conv1d(x[None], x[None, None], padding=far),
    "conv dilation": lambda x: F.conv1d(x[None], x[None, None], dilation=far),
    "conv of the longest": lambda x: F.conv1d(x[:1].expand(1, most), x[None, None], padding=5),
    "transposed conv": lambda x: F.conv_transpose1d(x[None], x[None, None], stride=2**39, padding=3)
    .expand(2**22, 2**22)
    .expand(2**22, 2**22, 2**22),
    "fold": lambda x: F.fold(x.new_zeros(1, 4, 9), (far, far), 2),
    "fold of the longest": lambda x: F.fold(x.new_zeros(1, 4, 9), (most, 2), 2, padding=1),
    "columns": lambda x: F.unfold(x[:1].expand(1, 2**40, 2**19, 2**19)[..., :1, :1], 1)
    .expand(1, 2**40, 2**40),
    "tril_indices": lambda x: clew.tril_indices(2**32, 2**32, device=x.device),
    "triu_indices": lambda x: clew.triu_indices(far, far, device=x.device),
    "arange": lambda x: clew.arange(far, device=x.device).double(),
    "one_hot": lambda x: F.one_hot(x.long(), far),
    "combinations": lambda x: clew.combinations(x.new_zeros(100), 20),
    "combinations again": lambda x: clew.combinations(x, 60_000, with_replacement=True),
}  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", REFUSED)
def test_sizes_that_overflow_are_refused(name: str, device: str):
    if name == "one_hot" and device == "meta":
        pytest.skip("its classes are a size that meta tensors may have")
    if name in ("resize_ bytes", "set_ bytes", "repeat", "arange", "tile") and device == "meta":
        pytest.skip("as above")
    with pytest.raises(RuntimeError):
        REFUSED[name](clew.arange(5.0, device=device))


def test_messages_name_operation_and_sizes():
    x = clew.arange(5.0)
    with pytest.raises(
        RuntimeError, match=r"set_: sizes \[3\] with strides \[4611686018427387904\]"
    ):
        x.set_(x, 0, (3,), (far,))
    with pytest.raises(RuntimeError, match="set_: storage_offset 4611686018427387904"):
        x.set_(x, far, (2,), (1,))
    with pytest.raises(RuntimeError, match=r"resize_: size \[9223372036854775807\]"):
        x[2:].resize_(most)
    assert x.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "shape",
    [(0, 4, 0), (3, 5, 1), (5, 3, -1), (4, 4, 9), (4, 4, -9), (6, 2, -3), (2, 6, 3), (3, 0, 0)],
)
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles(name: str, shape: tuple[int, int, int]):
    rows, columns, offset = shape
    expected = np.array(getattr(np, f"{name}_indices")(rows, offset, columns))
    assert getattr(clew, f"{name}_indices")(*shape).tolist() == expected.tolist()


def test_triangles_of_long_matrices():
    assert clew.tril_indices(far, 0).shape == (2, 0)
    assert clew.tril_indices(far, 1, 1 - far).tolist() == [[far - 1], [0]]
    assert clew.triu_indices(far, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    assert clew.triu_indices(most, most, most).shape == (2, 0)


def test_nothing_that_a_number_asks_for_runs_on():
    code = """
import clew
x = clew.full((3,), 5.0); m = clew.eye(2)
for call in (
    lambda: clew.polygamma(2**62, x), lambda: clew.mvlgamma(x, 2**62),
    lambda: clew.linalg.matrix_power(m, 2**62), lambda: clew.diff(x, 2**62),
    lambda: clew.rot90(m, 2**63 - 1), lambda: x.roll(2**63 - 1), lambda: x.chunk(2**62),
    lambda: x.tensor_split(2**62), lambda: clew.bincount(clew.tensor([1]), minlength=2**62),
    lambda: clew.histc(x, bins=2**62), lambda: clew.vander(x, 2**62),
    lambda: clew.multinomial(x, 2**62, replacement=True), lambda: clew.fft.fft(x, n=2**62),
    lambda: clew.hann_window(2**62), lambda: clew.linspace(0, 1, 2**62),
    lambda: clew.randperm(2**62), lambda: clew.nonzero_static(x, size=2**62),
    lambda: clew.ldexp(x, clew.tensor(2**62)), lambda: clew.tensor([2]) ** (2**62),
):
    try:
        call()
    except (RuntimeError, ValueError, IndexError, MemoryError, OverflowError):
        pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_interpolation_to_sizes_beyond_memory_is_refused_at_once(mode):
    with pytest.raises((RuntimeError, clew.OutOfMemoryError)):
        F.interpolate(clew.zeros(1, 1, 2, 2), scale_factor=2.0**31, mode=mode)


def test_a_meta_index_of_a_tensor_with_values_is_refused():
    x, values = clew.zeros(3, 3), clew.ones(3)
    for dtype in (clew.int32, clew.int64, clew.bool):
        index = clew.zeros(3, 3, dtype=dtype, device="meta")
        with pytest.raises(RuntimeError, match="meta"):
            x[index] = values
        with pytest.raises(RuntimeError, match="meta"):
            x[index] = 1
    with pytest.raises(RuntimeError, match="meta"):
        x[clew.tensor([0])] = values.to("meta")
