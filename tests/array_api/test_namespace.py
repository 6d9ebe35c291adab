"""The Array API namespace: what it has, dtypes of results, Python numbers, data type functions."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import clew
from clew import array_api as xp
from samples import COMPLEX, INTS
from samples import FLOATS_32_64 as FLOATS

ALL = ("bool", *INTS, *FLOATS, *COMPLEX)

FUNCTIONS = """
    __array_namespace_info__ abs acos acosh add all any arange argmax argmin argsort asarray asin
    asinh astype atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
    bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to can_cast ceil clip concat conj
    copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide empty empty_like
    equal exp expand_dims expm1 eye finfo flip floor floor_divide from_dlpack full full_like greater
    greater_equal hypot iinfo imag isdtype isfinite isinf isnan less less_equal linspace log log10
    log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max
    maximum mean meshgrid min minimum moveaxis multiply negative nextafter nonzero not_equal ones
    ones_like permute_dims positive pow prod real reciprocal remainder repeat reshape result_type
    roll round searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum
    take take_along_axis tan tanh tensordot tile tril triu trunc unique_all unique_counts
    unique_inverse unique_values unstack var vecdot where zeros zeros_like
""".split()
LINALG = """
    cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank
    matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
""".split()
FFT = """
    fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn
""".split()


def test_everything_is_there():
    assert not [n for n in FUNCTIONS if not callable(getattr(xp, n, None))]
    assert not [n for n in LINALG if not callable(getattr(xp.linalg, n, None))]
    assert not [n for n in FFT if not callable(getattr(xp.fft, n, None))]
    assert {*FUNCTIONS} <= {*xp.__all__} and {*LINALG} == {*xp.linalg.__all__}
    for name in ALL:
        assert getattr(xp, name) is getattr(clew, name)
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None)
    assert xp.nan != xp.nan
    for name in FUNCTIONS:
        function = getattr(xp, name)
        assert function.__doc__ and function.__name__ == name
        first = list(inspect.signature(function).parameters.values())[:1]
        if name in ("abs", "add", "sum", "sort", "take", "reshape", "arange", "where"):
            assert first[0].kind is inspect.Parameter.POSITIONAL_ONLY


def test_ways_to_the_namespace():
    assert clew.ones(2).__array_namespace__() is xp
    assert clew.ones(2).__array_namespace__(api_version="2024.12") is xp
    assert clew.__array_namespace__(api_version=None) is xp
    assert xp.__array_api_version__ == clew.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match=r"2024\.12"):
        clew.ones(2).__array_namespace__(api_version="1999.12")
    for name in ("permute_dims", "isdtype", "unique_values", "cumulative_sum", "vecdot"):
        assert getattr(clew, name) is getattr(xp, name)


def test_attributes_of_an_array():
    x = clew.ones(2, 3)
    assert (x.ndim, x.shape, x.dtype, x.mT.shape, x.T.shape) == (
        2, (2, 3), clew.float32, (3, 2), (3, 2),
    )  # fmt: skip
    assert x.to_device(x.device) is not None and x.device == xp.asarray([1]).device
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)
    y = clew.tensor([[1, 2], [3, 4]])
    z = y
    z @= y
    assert z.tolist() == [[7, 10], [15, 22]]
    assert complex(clew.tensor(1 + 2j)) == 1 + 2j and range(5)[clew.tensor(3)] == 3


def test_info():
    info = xp.__array_namespace_info__()
    assert info.default_device() == clew.device("cpu") and info.devices() == [clew.device("cpu")]
    assert set(info.dtypes()) == set(ALL)
    assert set(info.dtypes(kind="unsigned integer")) == {n for n in INTS if n[0] == "u"}
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {"bool", *COMPLEX}
    assert info.default_dtypes()["real floating"] is clew.get_default_dtype()
    assert info.capabilities()["boolean indexing"] is True
    assert clew.ones((1,) * info.capabilities()["max dimensions"]).ndim == 64
    for kind in ("real floating", "integral", "complex floating"):
        made = xp.asarray({"real floating": 1.0, "integral": 1, "complex floating": 1j}[kind])
        assert made.dtype is info.default_dtypes()[kind]


def numpy_promotion(a: str, b: str) -> str | None:
    """The standard's table; None where it has no entry."""
    kinds = [("b" if n == "bool" else "i" if n in INTS else "f") for n in (a, b)]
    if kinds[0] != kinds[1]:
        return None
    if "uint64" in (a, b) and any(n in INTS and n[0] == "i" for n in (a, b)):
        return None
    return np.promote_types(a, b).name


@pytest.mark.parametrize("a", ALL)
def test_promotion(a: str):
    for b in ALL:
        want = numpy_promotion(a, b)
        if want is None:
            continue
        dtype = getattr(clew, want)
        x, y = getattr(clew, a), getattr(clew, b)
        assert xp.result_type(x, y) is dtype
        assert xp.can_cast(y, dtype) and xp.can_cast(y, x) == (dtype is x)
        # Without exception for arrays of no dims.
        for shape, other in [((3,), (3,)), ((3,), ()), ((), (2, 1))]:
            one, two = clew.ones(shape, dtype=x), clew.ones(other, dtype=y)
            assert xp.result_type(one, two) is dtype
            assert xp.equal(one, two).dtype is clew.bool
            if a != "bool":
                assert xp.add(one, two).dtype is dtype and xp.multiply(one, two).dtype is dtype
                assert xp.matmul(clew.ones(2, dtype=x), clew.ones(2, dtype=y)).dtype is dtype
            assert xp.where(clew.tensor(True), one, two).dtype is dtype
            if shape == other:
                assert xp.concat([one, two]).dtype is dtype
                assert xp.stack([one, two]).dtype is dtype
    assert xp.can_cast(clew.int8, clew.float32) is False
    assert xp.can_cast(clew.float32, clew.complex64) and not xp.can_cast(clew.uint64, clew.int64)


def test_python_numbers_take_the_dtype_of_the_array():
    for name in ALL[1:]:
        x = clew.ones(2, dtype=getattr(clew, name))
        for got in (xp.add(x, 2), xp.subtract(2, x), xp.where(x == 1, x, 3), xp.multiply(x, 2)):
            assert got.dtype is x.dtype
        if name in FLOATS:
            assert xp.add(x, 0.5).dtype is x.dtype and xp.pow(2, x).dtype is x.dtype
            assert xp.add(x, 1j).dtype is x.dtype.to_complex()
    assert xp.logical_and(True, clew.tensor([1, 0]) == 1).tolist() == [True, False]
    assert xp.add(clew.tensor([1], dtype=clew.uint64), 2**63).tolist() == [2**63 + 1]
    assert xp.result_type(clew.int8, 3) is clew.int8
    with pytest.raises(TypeError, match="at least one"):
        xp.add(1, 2)
    with pytest.raises(TypeError, match="Tensor"):
        xp.sin(1.0)


def test_kinds():
    assert xp.isdtype(clew.bool, "bool") and not xp.isdtype(clew.bool, "numeric")
    for name in INTS:
        d = getattr(clew, name)
        assert xp.isdtype(d, "integral") and xp.isdtype(d, "numeric") and xp.isdtype(d, d)
        assert xp.isdtype(d, "signed integer") is (name[0] == "i")
        assert xp.isdtype(d, ("unsigned integer", "bool")) is (name[0] == "u")
    assert xp.isdtype(clew.complex64, ("real floating", clew.complex64))
    assert not xp.isdtype(clew.complex64, "real floating")
    with pytest.raises(ValueError, match="kind"):
        xp.isdtype(clew.bool, "floating")
    with pytest.raises(TypeError, match="kind"):
        xp.isdtype(clew.bool, 3)


def test_limits():
    for name in FLOATS:
        got, want = xp.finfo(getattr(clew, name)), np.finfo(name)
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(got, field) == getattr(want, field)
        assert got.dtype is getattr(clew, name) and isinstance(got.eps, float)
    assert xp.finfo(clew.ones(1, dtype=clew.complex128)).dtype is clew.float64
    for name in INTS:
        got, want = xp.iinfo(getattr(clew, name)), np.iinfo(name)
        assert (got.bits, got.max, got.min) == (want.bits, want.max, want.min)
        assert got.dtype is getattr(clew, name)


def test_astype():
    x = clew.tensor([0.0, 1.9, -2.5])
    assert xp.astype(x, clew.int32).tolist() == [0, 1, -2]
    assert xp.astype(x, clew.bool).tolist() == [False, True, True]
    assert xp.astype(x, clew.float32, copy=False) is x
    assert xp.astype(x, clew.float32).data_ptr() != x.data_ptr()
    assert xp.astype(x, clew.complex64).tolist() == [0, 1.899999976158142, -2.5]
    with pytest.raises(TypeError, match="complex"):
        xp.astype(clew.tensor([1j]), clew.float32)


def test_gradients_flow_through_the_namespace():
    x = clew.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = xp.sum(xp.square(xp.permute_dims(x, (1, 0))), axis=0) + xp.max(x, axis=(), keepdims=True)
    xp.sum(xp.take(y, clew.tensor([1]), axis=1)).backward()
    assert x.grad.tolist() == [[0.0, 1.0], [12.0, 17.0]]
