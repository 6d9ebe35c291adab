"""8-bit floats and half complex numbers: kept, moved, converted, computed in wider types."""

from __future__ import annotations

import copy
import io
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clew

# name: bits of mantissa, bias, what lies above the greatest number
FORMATS = {
    "float8_e4m3fn": (3, 7, "nan"),
    "float8_e5m2": (2, 15, "infinity"),
    "float8_e4m3fnuz": (3, 8, "number"),
    "float8_e5m2fnuz": (2, 16, "number"),
}
FLOAT8 = [getattr(clew, name) for name in (*FORMATS, "float8_e8m0fnu")]
STORED = [*FLOAT8, clew.complex32]
OTHERS = [clew.bool, clew.int32, clew.float16, clew.float64, clew.bfloat16]


def value_of(code: int, mantissa: int, bias: int, top: str) -> float:
    sign = -1.0 if code & 0x80 else 1.0
    e, m = (code & 0x7F) >> mantissa, code & ((1 << mantissa) - 1)
    if top == "number" and code == 0x80:
        return math.nan
    if top == "nan" and code & 0x7F == 0x7F:
        return math.nan
    if top == "infinity" and e == 31:
        return math.nan if m else sign * math.inf
    if e == 0:
        return sign * m * 2.0 ** (1 - bias - mantissa)
    return sign * (1 + m / 2**mantissa) * 2.0 ** (e - bias)


def decoded(name: str) -> list[float]:
    return [value_of(code, *FORMATS[name]) for code in range(256)]


def same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_has_the_value_that_its_format_says(name: str) -> None:
    codes = clew.arange(256).to(clew.uint8).view(getattr(clew, name))
    same(codes.float().numpy(), np.array(decoded(name), np.float32))
    same(codes.double().numpy(), np.array(decoded(name)))
    assert codes.tolist()[1] == decoded(name)[1]


@pytest.mark.parametrize("name", FORMATS)
def test_a_float_becomes_the_nearest_number_and_ties_go_to_the_even_code(name: str) -> None:
    table = np.array(decoded(name)[:128])
    finite = table[np.isfinite(table)]
    rng = np.random.default_rng(0)
    between = (finite[1:] + finite[:-1]) / 2
    x = np.concatenate(
        [finite, between, rng.uniform(0, finite[-1], 2000), np.exp(rng.uniform(-14, 6, 2000))]
    ).astype(np.float32)
    x = x[x <= finite[-1]]
    apart = np.abs(finite - x[:, None].astype(np.float64))
    nearest = apart.min(axis=1, keepdims=True)
    # Of two numbers equally near, the one with an even code.
    choices = np.where(apart == nearest, np.arange(len(finite)) % 2, 2)
    expected = choices.argmin(axis=1)
    dtype = getattr(clew, name)
    same(clew.from_numpy(x).to(dtype).view(clew.uint8).numpy(), expected)
    minus = clew.from_numpy(-x).to(dtype).view(clew.uint8).numpy()
    signed = expected | 0x80
    if FORMATS[name][2] == "number":  # there is no minus zero
        signed = np.where(expected == 0, 0, signed)
    same(minus, signed)


@pytest.mark.parametrize(
    "name, code", [("float8_e4m3fn", 0x7E), ("float8_e5m2", 0x7C), ("float8_e4m3fnuz", 0x80)]
)
def test_what_is_too_large(name: str, code: int) -> None:
    x = clew.tensor([1e6, math.inf]).to(getattr(clew, name))
    assert x.view(clew.uint8).tolist() == [code, code]
    nan = clew.tensor([math.nan]).to(getattr(clew, name))
    assert nan.float().isnan().all()


def test_scales_are_powers_of_two() -> None:
    x = clew.tensor([1.0, 1.4, 1.5, 3.0, -4.0, 0.0, math.nan, 2.0**127])
    scales = x.to(clew.float8_e8m0fnu)
    assert scales.view(clew.uint8).tolist() == [127, 127, 128, 129, 129, 0, 255, 254]
    assert scales.float()[:5].tolist() == [1.0, 1.0, 2.0, 4.0, 4.0]
    assert not clew.float8_e8m0fnu.is_signed


@pytest.mark.parametrize("dtype", STORED, ids=str)
@pytest.mark.parametrize(
    "other", [clew.bool, clew.int32, clew.float16, clew.float64, clew.bfloat16]
)
def test_conversions_go_through_the_wider_type(dtype: Any, other: Any) -> None:
    wide = clew.complex64 if dtype.is_complex else clew.float32
    x = clew.tensor([[0.5, 1.0, 2.0], [4.0, 8.0, 1.0]]).to(dtype)
    for t in (x, x.t(), x[:, 1]):
        same(t.to(other).float().numpy(), t.to(wide).to(other).float().numpy())
    back = clew.tensor([[0, 1, 2], [1, 4, 0]]).to(other)
    for t in (back, back.t()):
        assert t.to(dtype).tolist() == t.to(wide).to(dtype).tolist()


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_elements_move_unchanged(dtype: Any) -> None:
    x = clew.tensor([[0.5, 1.0, 2.0], [4.0, 8.0, 16.0]])
    q = x.to(dtype)
    i = clew.tensor([1, 0])
    moves = {
        "clone": lambda t: t.clone(),
        "t": lambda t: t.t().contiguous(),
        "cat": lambda t: clew.cat([t, t], 1),
        "stack": lambda t: clew.stack([t, t]),
        "index_select": lambda t: t.index_select(0, i),
        "list": lambda t: t[[1, 0]],
        "mask": lambda t: t[x > 1],
        "where": lambda t: clew.where(x > 1, t, t.flip(0)),
        "gather": lambda t: t.gather(1, clew.tensor([[2, 0], [1, 1]])),
        "scatter": lambda t: t.scatter(1, clew.tensor([[2], [0]]), t[:, :1]),
        "pad": lambda t: clew.nn.functional.pad(t, (1, 0), value=2.0),
        "roll": lambda t: t.roll(1, 0),
        "repeat": lambda t: t.repeat(2, 1),
        "tril": lambda t: t.tril(),
        "embedding": lambda t: clew.nn.functional.embedding(i, t),
        "fill": lambda t: t.clone().fill_(2.0),
        "setitem": lambda t: (u := t.clone(), u.__setitem__((0, 1), 2.0))[0],
        "index_put": lambda t: t.index_put((i,), t.flip(0)),
        "zeros": lambda t: clew.ones_like(t),
        "view": lambda t: t.view(3, 2),
        "masked_fill": lambda t: t.masked_fill(x > 1, 1.0),
    }
    zero = dtype is clew.float8_e8m0fnu  # has no 0
    for name, move in moves.items():
        out = move(q)
        assert out.dtype is dtype, name
        if not (zero and name == "tril"):
            same(out.to(clew.complex64).numpy(), move(x).to(clew.complex64).numpy())
    assert q.element_size() == dtype.itemsize
    assert q.untyped_storage().nbytes() == 6 * dtype.itemsize


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_elementwise_operations_round_once(dtype: Any) -> None:
    wide = clew.complex64 if dtype.is_complex else clew.float32
    x, y = clew.tensor([0.5, 1.0, 4.0]).to(dtype), clew.tensor([2.0, 1.0, 0.5]).to(dtype)
    out = x * y + x
    assert out.dtype is dtype
    expected = (x.to(wide) * y.to(wide)).to(dtype).to(wide) + x.to(wide)
    assert out.tolist() == expected.to(dtype).tolist()
    assert (x * 2.0).dtype is dtype and (x == y).tolist() == [False, True, False]
    x.mul_(y)
    assert x.to(wide).tolist() == [1.0, 1.0, 2.0]
    assert x.any().item() and x.count_nonzero().item() == 3 and len(x.nonzero()) == 3


def test_complex_halves_have_half_parts() -> None:
    re, im = clew.tensor([1.0, -3.0]).half(), clew.tensor([2.0, 4.0]).half()
    z = clew.complex(re, im)
    assert z.dtype is clew.complex32 and z.tolist() == [1 + 2j, -3 + 4j]
    assert z.real.dtype is clew.float16 and z.imag.tolist() == [2.0, 4.0]
    assert z.abs().dtype is clew.float16 and z.abs().tolist()[1] == 5.0
    assert z.conj().tolist() == [1 - 2j, -3 - 4j]
    assert clew.view_as_complex(clew.view_as_real(z)).tolist() == z.tolist()
    assert clew.ones(2).half().chalf().dtype is clew.complex32
    assert (re * 1j).dtype is clew.complex32 and (re.bfloat16() * 1j).dtype is clew.complex64
    clew.manual_seed(0)
    assert clew.randn(4, dtype=clew.complex32).abs().sum().item() > 0


def test_promotion() -> None:
    pairs = [
        (clew.bool, clew.complex32),
        (clew.int64, clew.complex32),
        (clew.float16, clew.complex32),
        (clew.bfloat16, clew.complex64),
        (clew.float32, clew.complex64),
        (clew.float64, clew.complex128),
        (clew.complex64, clew.complex64),
    ]
    for other, expected in pairs:
        assert clew.promote_types(clew.complex32, other) is expected
        assert clew.promote_types(other, clew.complex32) is expected
    for other in (clew.bool, clew.float32, clew.complex32, clew.float8_e5m2):
        with pytest.raises(RuntimeError, match="float8 types have no common type"):
            clew.promote_types(clew.float8_e4m3fn, other)
    with pytest.raises(RuntimeError, match="float8"):
        clew.ones(2) * clew.ones(2).to(clew.float8_e4m3fn)


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_what_is_not_computed_says_so(dtype: Any) -> None:
    x = clew.ones(2, 2).to(dtype)
    for f in (clew.sum, clew.sort, clew.argmax, lambda t: t @ t, lambda t: t.cumsum(0)):
        with pytest.raises((NotImplementedError, RuntimeError), match=r"implemented|order|complex"):
            f(x)
    with pytest.raises(NotImplementedError, match="arange|implemented"):
        clew.arange(3, dtype=dtype)
    with pytest.raises(TypeError, match="unsupported ScalarType"):
        x.numpy()
    with pytest.raises(TypeError):
        clew.set_default_dtype(dtype)


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_saving(dtype: Any, tmp_path: Path) -> None:
    x = clew.tensor([[0.5, 1.0], [2.0, 4.0]]).to(dtype)
    buffer = io.BytesIO()
    clew.save({"x": x, "row": x[1]}, buffer)
    buffer.seek(0)
    read = clew.load(buffer)
    assert read["x"].dtype is dtype and read["x"].tolist() == x.tolist()
    assert read["row"].tolist() == x[1].tolist()
    read["x"][1, 0] = 1.0  # the two still share memory
    assert read["row"].tolist()[0] == 1.0
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.dtype is dtype and other.tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    if dtype is not clew.complex32:
        clew.save({"x": x}, tmp_path / "x.safetensors")
        assert clew.load(tmp_path / "x.safetensors")["x"].tolist() == x.tolist()
    lent = clew.from_dlpack(x)
    assert lent.dtype is dtype and lent.data_ptr() == x.data_ptr()


def test_gradients_pass_conversions() -> None:
    x = clew.tensor([0.3, 1.2], requires_grad=True)
    y = x.to(clew.float8_e4m3fn).float()
    (y * clew.tensor([1.0, 2.0])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.0, 2.0]
    layer = clew.nn.Linear(2, 2)
    layer.weight = clew.nn.Parameter(layer.weight.detach().to(clew.float8_e5m2), False)
    out = clew.nn.functional.linear(x, layer.weight.to(clew.float32), layer.bias)
    assert out.requires_grad
    assert layer.state_dict()["weight"].dtype is clew.float8_e5m2


def test_text_and_limits() -> None:
    x = clew.tensor([0.5, 2.0]).to(clew.float8_e4m3fn)
    assert repr(x) == "tensor([0.5000, 2.0000], dtype=clew.float8_e4m3fn)"
    assert repr(x[1]) == "tensor(2., dtype=clew.float8_e4m3fn)" and f"{x[0]:.2f}" == "0.50"
    assert x.type() == "clew.Float8_e4m3fnTensor"
    limits = clew.finfo(clew.float8_e4m3fn)
    assert (limits.max, limits.eps, limits.bits) == (448.0, 0.125, 8)
    assert clew.finfo(clew.complex32).max == 65504.0
    scale = clew.finfo(clew.float8_e8m0fnu)
    assert (scale.min, scale.max, scale.eps) == (2.0**-127, 2.0**127, 1.0)


def test_they_wait_like_others() -> None:
    def f(x: clew.Tensor) -> clew.Tensor:
        scale = x.abs().max() / 448.0
        q = (x / scale).to(clew.float8_e4m3fn)
        return (q.float() * scale, (q * q).float(), clew.cat([q, q]).float().sum())

    x = clew.randn(100, 100)
    for eager, waited in zip(f(x), clew.compile(f)(x)):
        assert eager.tolist() == waited.tolist()


def test_every_operation_works_or_says_why_not() -> None:
    others = [clew.tensor([0, 1]), clew.tensor(2), 2, 0.5, [0], None, True, "mean"]
    tensors = [clew.tensor([[0.5, 1.0], [2.0, 4.0]]).to(d) for d in (FLOAT8[0], clew.complex32)]
    tried = 0
    for name, function in sorted(clew._C.functions.items()):
        if name.startswith("_"):
            continue
        for x in tensors:
            for arguments in ((x,), (x, x), (x, x, x), *((x, o) for o in others)):
                try:
                    function(*arguments)
                except (RuntimeError, TypeError, ValueError, IndexError) as error:
                    assert "internal" not in str(error), (name, str(error))
                tried += 1
    assert tried > 5000
