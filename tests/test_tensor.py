"""The Tensor type: promotion, devices, memory, subclasses, operators, out=, pickled functions."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import clew

NAMES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
# PyTorch's table of promotions, rows and columns in the order above, by first letter and width.
SHORT = dict(zip(["b1", "u1", "i1", "i2", "i4", "i8", "f2", "bf", "f4", "f8", "c8", "c16"], NAMES))
TABLE = """
b1 u1 i1 i2 i4 i8 f2 bf f4 f8 c8 c16
u1 u1 i2 i2 i4 i8 f2 bf f4 f8 c8 c16
i1 i2 i1 i2 i4 i8 f2 bf f4 f8 c8 c16
i2 i2 i2 i2 i4 i8 f2 bf f4 f8 c8 c16
i4 i4 i4 i4 i4 i8 f2 bf f4 f8 c8 c16
i8 i8 i8 i8 i8 i8 f2 bf f4 f8 c8 c16
f2 f2 f2 f2 f2 f2 f2 f4 f4 f8 c8 c16
bf bf bf bf bf bf f4 bf f4 f8 c8 c16
f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c8 c16
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16
c8 c8 c8 c8 c8 c8 c8 c8 c8 c16 c8 c16
c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""


def test_promotion_table():
    rows = [line.split() for line in TABLE.split("\n") if line]
    for a, row in zip(NAMES, rows):
        for b, want in zip(NAMES, row):
            got = clew.promote_types(getattr(clew, a), getattr(clew, b))
            assert got.name == SHORT[want], (a, b)


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        (clew.ones(2, dtype=clew.int64), 1.5, "float32"),
        (clew.ones(2, dtype=clew.float16), 1.5, "float16"),
        (clew.ones(2, dtype=clew.int8), 1000, "int8"),
        (clew.ones(2, dtype=clew.bool), 1, "int64"),
        (clew.ones(2, dtype=clew.bool), True, "bool"),
        (clew.ones(2), 1j, "complex64"),
        (clew.ones(2, dtype=clew.float64), 1j, "complex128"),
        (clew.ones(2, dtype=clew.int32), clew.tensor(1, dtype=clew.int64), "int32"),
        (clew.ones(2, dtype=clew.int32), clew.tensor(1.0, dtype=clew.float64), "float64"),
        (clew.ones(2), clew.tensor(1.0, dtype=clew.float64), "float32"),
        (clew.tensor(1), clew.tensor(1.0), "float32"),
        (clew.ones(2, dtype=clew.float16), clew.tensor(1.0, dtype=clew.float32), "float16"),
    ],
)
def test_numbers_and_0d_tensors_are_weak(left, right, want):
    assert clew.result_type(left, right).name == want
    assert clew.mul(left, right).dtype.name == want
    assert (right * left).dtype.name == want


def test_division_and_default_dtype():
    a = clew.tensor([3, 4])
    assert (a / 2).dtype is clew.float32
    clew.set_default_dtype(clew.float64)
    try:
        assert (a / 2).dtype is clew.float64
        assert clew.tensor(1.0).dtype is clew.float64
        assert clew.zeros(1).dtype is clew.float64
    finally:
        clew.set_default_dtype(clew.float32)
    with pytest.raises(TypeError):
        clew.set_default_dtype(clew.int64)


def test_operators_and_reflections():
    a = clew.tensor([4.0, 9.0])
    for got, want in (
        (2 - a, [-2.0, -7.0]),
        (36 / a, [9.0, 4.0]),
        (2**a, [16.0, 512.0]),
        (a**0.5, [2.0, 3.0]),
        (7 // a, [1.0, 0.0]),
        (10 % a, [2.0, 1.0]),
        (-a, [-4.0, -9.0]),
        (abs(-a), [4.0, 9.0]),
        (+a, [4.0, 9.0]),
    ):
        assert got.tolist() == want
    i = clew.tensor([6, 5])
    assert (i & 3).tolist() == [2, 1]
    assert (i | 8).tolist() == [14, 13]
    assert (1 ^ i).tolist() == [7, 4]
    assert (~i).tolist() == [-7, -6]
    assert (i << 1).tolist() == [12, 10]
    assert (i >> 1).tolist() == [3, 2]
    quotient, rest = divmod(i, 4)
    assert quotient.tolist() == [1, 1] and rest.tolist() == [2, 1]
    assert (a == clew.tensor([4.0, 0.0])).tolist() == [True, False]
    assert (a != "text") is True
    assert (a == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        a + "text"
    with pytest.raises(TypeError):
        a < None  # noqa: B015


def test_numpy_arrays_mix_in():
    a = clew.tensor([1.0, 2.0], dtype=clew.float64)
    b = np.array([10.0, 20.0])
    assert isinstance(a + b, clew.Tensor) and (a + b).tolist() == [11.0, 22.0]
    assert isinstance(b + a, clew.Tensor)
    assert (a * np.float32(2)).tolist() == [2.0, 4.0]
    np.testing.assert_array_equal(np.asarray(a), [1.0, 2.0])
    assert np.mean(a) == 1.5


def test_shape_errors_quote_shapes():
    with pytest.raises(RuntimeError, match=r"add: shapes must broadcast .* got \[2, 3\] and \[4\]"):
        clew.ones(2, 3) + clew.ones(4)
    with pytest.raises(
        RuntimeError,
        match=r"matmul: input.shape\[-1\] must equal other.shape\[-2\]; got float32\[2, 3\] and",
    ):
        clew.ones(2, 3) @ clew.ones(4, 5)


@pytest.mark.parametrize("size", [(2**62, 8), (2**40, 2**40), (2**50,), (1 << 44,)])
def test_memory_that_cannot_be_had(size):
    for make in (clew.zeros, clew.empty, clew.ones):
        with pytest.raises(RuntimeError, match=r"memory|elements|count") as info:
            make(*size)
        assert isinstance(info.value, RuntimeError)
    with pytest.raises(clew.OutOfMemoryError) as info:
        clew.empty(2**50)
    assert isinstance(info.value, MemoryError)
    assert clew.ones(2).sum().item() == 2.0


def test_expanding_without_memory_then_materialising():
    huge = clew.ones(1).expand(2**45)
    assert huge.numel() == 2**45
    with pytest.raises(RuntimeError):
        huge + 1
    with pytest.raises(RuntimeError):
        huge.clone()


def test_negative_and_bad_sizes():
    with pytest.raises(RuntimeError, match="negative dimension"):
        clew.zeros(-1)
    with pytest.raises(TypeError):
        clew.zeros(1.5)
    with pytest.raises(TypeError):
        clew.zeros("3")
    with pytest.raises(RuntimeError, match="at most 64"):
        clew.zeros((1,) * 65)


def test_meta_device():
    a = clew.empty(2**40, 3, device="meta")
    b = (a.float() * 2 + 1).sum(1).unsqueeze(0)
    assert b.shape == (1, 2**40) and b.device.type == "meta"
    with pytest.raises(RuntimeError, match="meta"):
        a.sum().item()
    with pytest.raises(RuntimeError, match="same device"):
        clew.empty(3, device="meta") + clew.ones(3)
    w = clew.empty(3, 3, device="meta", requires_grad=True)
    (w @ w).sum().backward()
    assert w.grad.shape == (3, 3) and w.grad.device.type == "meta"


def test_devices():
    assert clew.device("cpu") == clew.device(clew.device("cpu"))
    assert str(clew.device("cpu")) == "cpu" and repr(clew.device("meta")) == "device(type='meta')"
    for bad in ("cuda", "cuda:1", "mps", "nonsense"):
        with pytest.raises(RuntimeError):
            clew.zeros(1, device=bad)
    with pytest.raises(RuntimeError, match="no CUDA"):
        clew.zeros(1).cuda()


def test_devices_with_an_index():
    first, plain = clew.device("cpu:0"), clew.device("cpu")
    assert str(first) == "cpu:0" and repr(first) == "device(type='cpu', index=0)"
    assert first.index == 0 and clew.device("cpu", 3).index == 3 and plain.index is None
    assert first == clew.device("cpu", 0) == clew.device(type="cpu", index=0)
    assert hash(first) == hash(clew.device("cpu", 0))
    assert first != plain and first != clew.device("cpu:1") and first != clew.device("meta:0")
    assert clew.device(first) == first and first != "cpu:0"
    assert pickle.loads(pickle.dumps(first)) == first
    assert {plain: 1, first: 2}[clew.device("cpu:0")] == 2
    # Tensors are where they are.
    for made in (clew.zeros(1, device="cpu:0"), clew.zeros(1).to("cpu:3"), clew.zeros(1).to(first)):
        assert made.device == plain and str(made.device) == "cpu"
    assert str(clew.zeros(1, device="meta:0").device) == "meta"
    for bad in (
        "cpu:",
        "cpu:-1",
        "cpu:x",
        "cpu:00",
        "cpu:0:0",
        "cpu: 0",
        "cpu:99999999999999999999",
    ):
        with pytest.raises(RuntimeError, match="Invalid device string"):
            clew.device(bad)
        with pytest.raises(RuntimeError, match="Invalid device string"):
            clew.zeros(1, device=bad)
    with pytest.raises(RuntimeError, match="index"):
        clew.device("cpu", -1)
    with pytest.raises(RuntimeError, match="index of its own"):
        clew.device("cpu:0", 0)
    with pytest.raises(TypeError, match="index must be an int"):
        clew.device("cpu", "0")


def test_resize_gives_a_memory_format():
    x = clew.arange(24.0).reshape(1, 2, 3, 4)
    assert x.resize_(1, 2, 3, 4, memory_format=clew.channels_last) is x
    assert x.stride() == (24, 1, 8, 2) and x[0, :, 0, 0].tolist() == [0, 1]
    assert clew.empty(2).resize_((2, 3, 4, 5), memory_format=clew.channels_last).stride() == (
        60, 1, 15, 3,
    )  # fmt: skip
    assert clew.empty(2).resize_(size=(2, 3, 4, 2, 2), memory_format=clew.channels_last_3d).stride(
    ) == (48, 1, 12, 6, 3)  # fmt: skip
    turned = clew.empty(3, 2).t()
    assert turned.resize_(2, 3).stride() == (1, 2)
    assert turned.resize_(2, 3, memory_format=clew.contiguous_format).stride() == (3, 1)
    with pytest.raises(RuntimeError, match="rank 4"):
        clew.empty(2).resize_((2, 3), memory_format=clew.channels_last)
    with pytest.raises(RuntimeError, match="preserve_format"):
        clew.empty(2).resize_((2, 3), memory_format=clew.preserve_format)
    with pytest.raises(TypeError, match="memory_format"):
        clew.empty(2).resize_((2, 3), memory_format=3)


def test_resize_as_gives_a_memory_format():
    last = clew.empty(2, 3, 4, 5, memory_format=clew.channels_last)
    assert clew.empty(2).resize_as_(last).stride() == (60, 20, 5, 1)
    keep = clew.preserve_format
    assert clew.empty(2).resize_as_(last, memory_format=keep).stride() == (60, 1, 15, 3)
    assert clew.empty(2).resize_as_(clew.empty(3, 2).t(), memory_format=keep).stride() == (3, 1)
    plain = clew.empty(2, 3, 4, 5)
    wanted = clew.channels_last
    assert clew.empty(2).resize_as_(plain, memory_format=wanted).stride() == (60, 1, 15, 3)


def test_size():
    s = clew.zeros(2, 3).shape
    assert isinstance(s, tuple) and s == (2, 3) and s.numel() == 6
    assert repr(s) == "clew.Size([2, 3])"
    assert isinstance(s[:1], clew.Size) and isinstance(s + (4,), clew.Size)
    assert pickle.loads(pickle.dumps(s)) == s and hash(s) == hash((2, 3))
    with pytest.raises(TypeError):
        clew.Size(["a"])


def test_dtypes():
    assert (
        repr(clew.float32) == "clew.float32"
        and clew.float is clew.float32
        and clew.long is clew.int64
    )
    assert pickle.loads(pickle.dumps(clew.bfloat16)) is clew.bfloat16
    assert copy.deepcopy(clew.int8) is clew.int8
    for name, np_type in (
        ("float16", np.float16),
        ("float32", np.float32),
        ("float64", np.float64),
    ):
        ours, theirs = clew.finfo(getattr(clew, name)), np.finfo(np_type)
        assert (ours.max, ours.min, ours.eps, ours.tiny) == (
            theirs.max,
            theirs.min,
            theirs.eps,
            theirs.tiny,
        )
    assert clew.finfo(clew.bfloat16).max == 3.3895313892515355e38
    limits = clew.finfo(clew.bfloat16)
    assert pickle.loads(pickle.dumps(limits)).max == copy.deepcopy(limits).max == limits.max
    with pytest.raises(AttributeError, match="max cannot be set"):
        limits.max = 1.0
    assert (clew.iinfo(clew.int16).min, clew.iinfo(clew.uint8).max) == (-32768, 255)
    with pytest.raises(TypeError):
        clew.finfo(clew.int8)
    with pytest.raises(TypeError):
        clew.iinfo(clew.float32)
    # Python's own types of numbers stand for the widest of their kind.
    assert clew.finfo(float).max == clew.finfo(complex).max == np.finfo(np.float64).max
    assert clew.iinfo(int).max == 2**63 - 1
    for limits, wrong in ((clew.finfo, int), (clew.iinfo, float), (clew.iinfo, bool)):
        with pytest.raises(TypeError, match=f"{limits.__name__}: clew"):
            limits(wrong)


def test_out_argument():
    a, b, out = clew.ones(2), clew.ones(2), clew.empty(2)
    assert clew.add(a, b, out=out) is out and out.tolist() == [2.0, 2.0]
    with pytest.warns(UserWarning, match="resized"):
        clew.add(clew.ones(3), 1, out=out)
    assert out.shape == (3,)
    with pytest.raises(RuntimeError, match="can't be cast"):
        clew.add(a, b, out=clew.empty(2, dtype=clew.int64))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        clew.add(a.requires_grad_(), b, out=out)
    values, order = clew.empty(0), clew.empty(0, dtype=clew.int64)
    got = clew.sort(clew.tensor([2.0, 1.0]), out=(values, order))
    assert got.values is values and order.tolist() == [1, 0]
    with pytest.raises(TypeError, match="out"):
        clew.add(b, b, out=3)


def test_named_tuples():
    got = clew.max(clew.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
    assert got.values.tolist() == [5.0, 7.0] and got.indices.tolist() == [1, 0]
    values, _ = got
    assert values is got[0] and "max" in type(got).__name__


def test_keyword_names_and_numpy_names():
    a = clew.ones(2, 3)
    assert clew.sum(input=a, dim=0).shape == (3,)
    assert a.sum(axis=1, keepdims=True).shape == (2, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'dims'"):
        clew.cumsum(a, dims=0)
    with pytest.raises(TypeError, match="multiple values"):
        clew.cumsum(a, 0, dim=0)
    with pytest.raises(TypeError, match="missing required argument 'dim'"):
        clew.cumsum(a)
    with pytest.raises(IndexError, match=r"dim must be in \[-2, 1\]; got 5"):
        a.sum(5)


def test_subclass():
    class Mine(clew.Tensor):
        pass

    t = clew.Tensor._make_subclass(Mine, clew.ones(2), True)
    assert isinstance(t, Mine) and t.requires_grad
    t.note = "kept"
    u = t * 2
    assert type(u) is Mine
    u.sum().backward()
    assert t.grad.tolist() == [2.0, 2.0]
    m = Mine([1.0, 2.0])
    assert type(m) is Mine and m.tolist() == [1.0, 2.0]


def test_attributes_weak_references_and_cycles():
    t = clew.ones(2)
    t.anything = [1, 2]
    t.itself = t
    ref = weakref.ref(t)
    del t
    gc.collect()
    assert ref() is None
    w = clew.ones(2, requires_grad=True)
    w.register_hook(lambda g, keep=w: None)
    ref = weakref.ref(w)
    del w
    gc.collect()
    assert ref() is None


def test_hash_is_identity():
    a, b = clew.ones(2), clew.ones(2)
    assert len({a, b, a}) == 2
    assert {a: 1}[a] == 1


def test_reused_objects_are_clean():
    for _ in range(100):
        t = clew.ones(3, requires_grad=True)
        t.note = 1
        (t * 2).sum().backward()
        del t
    fresh = [clew.ones(3) for _ in range(50)]
    for t in fresh:
        assert t.grad is None and not t.requires_grad and not hasattr(t, "note") and t._version == 0


def test_ops_pickle_and_describe_themselves():
    assert pickle.loads(pickle.dumps(clew.add)) is clew.add
    assert pickle.loads(pickle.dumps(clew.nn.functional.gelu)).__name__ == "gelu"
    assert clew.add.__name__ == "add" and "add(Operand input" in clew.add.__doc__
    assert clew.Tensor.add.__name__ == "add"

    class Holder:
        activation = clew.tanh

    assert Holder().activation(clew.zeros(1)).item() == 0.0


def test_legacy_constructor():
    assert clew.Tensor(2, 3).shape == (2, 3)
    assert clew.Tensor([1, 2]).dtype is clew.float32
    assert clew.Tensor().shape == (0,)
    with pytest.raises(TypeError):
        clew.Tensor(2, dtype=clew.int64)
    with pytest.raises(TypeError):
        clew.Tensor("abc")


def test_bool_len_iter_index():
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(clew.ones(2))
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(clew.ones(0))
    assert bool(clew.tensor([3.0])) and not bool(clew.tensor(0))
    with pytest.raises(TypeError, match="0-d"):
        len(clew.tensor(1))
    with pytest.raises(TypeError, match="0-d"):
        iter(clew.tensor(1))
    assert [x.item() for x in clew.arange(3)] == [0, 1, 2]
    assert list(range(5))[clew.tensor(2)] == 2
    assert float(clew.tensor(1.5)) == 1.5 and int(clew.tensor(2.9)) == 2


def test_to():
    t = clew.ones(2)
    assert t.to(clew.float32) is t and t.to("cpu") is t
    assert t.to(clew.int32).dtype is clew.int32
    assert t.to("cpu", clew.float64).dtype is clew.float64
    assert t.to(clew.ones(1, dtype=clew.int8)).dtype is clew.int8
    assert t.to(clew.float32, copy=True) is not t
    assert t.to("meta").device.type == "meta"
    with pytest.raises(TypeError):
        t.to("cpu", nonsense=1)
    with pytest.raises(TypeError):
        t.to(3.5)
    x = clew.ones(2, requires_grad=True)
    x.double().sum().backward()
    assert x.grad.dtype is clew.float32


def test_memory_formats():
    t = clew.rand(2, 3, 4, 5)
    c = t.contiguous(memory_format=clew.channels_last)
    assert c.stride() == (60, 1, 15, 3) and (c == t).all()
    assert c.is_contiguous(memory_format=clew.channels_last) and not c.is_contiguous()
    assert (c * 2).stride() == c.stride()
    assert c.clone().stride() == c.stride()
    assert c.clone(memory_format=clew.contiguous_format).is_contiguous()
    with pytest.raises(RuntimeError, match="rank 4"):
        clew.ones(2).contiguous(memory_format=clew.channels_last)


def test_missing_names_explain_themselves():
    with pytest.raises(AttributeError, match=r"no attribute 'sofmax'.*nearest name is 'softmax'"):
        clew.sofmax  # noqa: B018
    with pytest.raises(AttributeError, match="clew does not have it"):
        clew.zzzzzzzz  # noqa: B018


def test_memory_statistics():
    clew.empty_cache()
    before = clew.memory_stats()["live_bytes"]
    t = clew.empty(1000, 1000)
    assert clew.memory_stats()["live_bytes"] - before == 4_000_000
    clew.reset_peak_memory_stats()
    u = t + t
    assert clew.memory_stats()["peak_bytes"] - before >= 8_000_000
    del t, u
    assert clew.memory_stats()["live_bytes"] == before
