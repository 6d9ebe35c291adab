"""Saving and loading: what comes back, what is refused, and files made to do harm."""

import collections
import io
import os
import pickle
import random
import struct
import zipfile
import zlib

import numpy as np
import pytest

import clew
from clew import nn, serialization
from clew.serialization import load, save

DTYPES = [
    clew.bool,
    clew.uint8,
    clew.int8,
    clew.int16,
    clew.int32,
    clew.int64,
    clew.float16,
    clew.bfloat16,
    clew.float32,
    clew.float64,
    clew.complex64,
    clew.complex128,
]


def trip(value, **options):
    file = io.BytesIO()
    save(value, file)
    return load(io.BytesIO(file.getvalue()), **options)


def same(a, b):
    assert type(a) is type(b), (a, b)
    if isinstance(a, clew.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
        assert a.requires_grad == b.requires_grad and a.device == b.device
        assert clew.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for k in a:
            same(a[k], b[k])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    else:
        assert a == b


VALUES = [
    None,
    True,
    False,
    0,
    255,
    256,
    65535,
    65536,
    -1,
    -70000,
    2**31,
    -(2**63),
    10**30,
    -(2**5000),
    0.0,
    -1.5,
    float("inf"),
    1e300,
    3 - 4j,
    "",
    "text",
    "é𝄞\n'",
    "\ud800",
    b"",
    b"\x00\xff",
    bytearray(b"abc"),
    bytearray(),
    (),
    (1,),
    (1, 2),
    (1, 2, 3),
    (1, 2, 3, 4),
    [],
    [1, [2, [3]]],
    {},
    {"a": 1, 2: "b", (1, 2): None},
    {1, 2},
    frozenset([1]),
    slice(1, None, 2),
    collections.OrderedDict(b=1, a=2),
    collections.Counter("aab"),
    list(range(2500)),
    {i: str(i) for i in range(2500)},
    clew.float32,
    clew.bool,
    clew.Size([1, 2]),
    clew.device("cpu"),
    clew.device("meta"),
    np.float64(2.5),
    np.int32(-3),
    np.bool_(True),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v)[:30])
def test_plain_values(value):
    same(value, trip(value))
    same([value, {"k": (value,)}], trip([value, {"k": (value,)}]))


def test_defaultdict_and_nan():
    d = collections.defaultdict(list, a=[1])
    back = trip(d)
    assert back == d and back.default_factory is list
    assert trip(collections.defaultdict()).default_factory is None
    assert np.isnan(trip(float("nan")))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.zeros((0, 2)),
        np.array(3.5),
        np.array(["a", "bcd"]),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(3, dtype=">i4"),
        np.array([b"x"]),
        np.array([True]),
    ],
    ids=str,
)
def test_numpy_arrays(array):
    back = trip(array)
    # NumPy itself turns arrays of the other byte order when it unpickles them.
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.shape == array.shape and (back == array).all()
    file = io.BytesIO()
    save(np.array([object()]), file)
    with pytest.raises(pickle.UnpicklingError):
        load(file)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_every_dtype(dtype, shape, suffix, tmp_path):
    if suffix == ".safetensors" and dtype == clew.complex128:
        pytest.skip("the format has no complex128")
    t = (clew.rand(*shape) * 3 if shape else clew.tensor(2.0)).to(dtype)
    path = tmp_path / f"t{suffix}"
    save({"t": t}, path)
    for mmap in (False, True):
        same({"t": t}, load(path, mmap=mmap))


def test_views_share_memory_again():
    base = clew.arange(12.0)
    value = {
        "base": base,
        "row": base.view(3, 4)[1],
        "column": base.view(3, 4)[:, 2],
        "turned": base.view(3, 4).t(),
        "wide": clew.ones(1).expand(3, 5),
        "bits": base.view(clew.int32),
    }
    file = io.BytesIO()
    save(value, file)
    back = load(file)
    same(value, back)
    back["base"].fill_(7)
    assert back["row"].tolist() == [7] * 4 and back["column"].tolist() == [7] * 3
    members = [n for n in zipfile.ZipFile(file).namelist() if "/data/" in n]
    assert len(members) == 2  # base once, the one of `wide` once


def test_identity_is_kept():
    t, inner = clew.ones(2), [1]
    back = trip({"a": t, "b": t, "c": inner, "d": [inner]})
    assert back["a"] is back["b"] and back["c"] is back["d"][0]
    loop = []
    loop.append(loop)
    back = trip(loop)
    assert back[0] is back


def test_gradients_and_parameters():
    leaf = clew.ones(2, requires_grad=True)
    p = nn.Parameter(clew.arange(3.0))
    frozen = nn.Parameter(clew.arange(3), requires_grad=False)
    back = trip([leaf, leaf * 2, p, frozen, p])
    assert back[0].requires_grad and back[0].is_leaf and back[0].grad is None
    assert back[1].requires_grad and back[1].is_leaf
    assert type(back[2]) is nn.Parameter and back[2].requires_grad and back[4] is back[2]
    assert type(back[3]) is nn.Parameter and not back[3].requires_grad
    back[0].sum().backward()
    assert back[0].grad.tolist() == [1, 1]


def test_loaded_tensors_are_ordinary(tmp_path):
    save({"a": clew.zeros(3)}, tmp_path / "a.pt")
    for mmap in (False, True):
        t = load(tmp_path / "a.pt", mmap=mmap)["a"]
        t += 1
        t.requires_grad_()
        (t * 2).sum().backward()
        assert t.grad.tolist() == [2, 2, 2]
    assert load(tmp_path / "a.pt")["a"].tolist() == [0, 0, 0]  # mapped memory is copied on write


def test_meta_tensors():
    back = trip(clew.empty(2, 3, device="meta", dtype=clew.int32))
    assert back.device.type == "meta" and back.shape == (2, 3) and back.dtype == clew.int32


def test_module_and_optimizer(tmp_path):
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    opt = clew.optim.Adam(model.parameters())
    model(clew.randn(4, 2)).square().sum().backward()
    opt.step()
    save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": 3}, tmp_path / "c.pt")
    back = load(tmp_path / "c.pt")
    assert back["epoch"] == 3 and back["model"]._metadata == model.state_dict()._metadata
    other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert str(other.load_state_dict(back["model"])) == "<All keys matched successfully>"
    save(model.state_dict(), tmp_path / "c.safetensors")
    tensors = load(tmp_path / "c.safetensors")
    other.load_state_dict(tensors)
    assert set(tensors) == set(model.state_dict())


def test_top_level_names(tmp_path):
    clew.save([clew.ones(1)], tmp_path / "x")
    assert clew.load(tmp_path / "x")[0].item() == 1
    clew.save(3, str(tmp_path / "y"))
    assert clew.load(str(tmp_path / "y")) == 3


def test_map_location():
    file = io.BytesIO()
    save(clew.ones(2), file)
    assert load(file, map_location="cpu").tolist() == [1, 1]
    assert load(file, map_location=clew.device("cpu")).tolist() == [1, 1]
    assert load(file, map_location={"cpu": "cpu"}).tolist() == [1, 1]
    seen = []
    assert load(file, map_location=lambda s, where: seen.append(where) or s).tolist() == [1, 1]
    assert load(file, map_location=lambda s, where: None).tolist() == [1, 1]
    assert seen == ["cpu"]
    with pytest.raises(TypeError, match="map_location"):
        load(file, map_location=lambda s, where: 3)
    with pytest.raises(TypeError, match="map_location"):
        load(file, map_location=3)
    other = io.BytesIO(_replaced(file.getvalue(), b"\x03\0\0\0cpu", b"\x06\0\0\0cuda:0"))
    with pytest.raises(RuntimeError, match="map_location='cpu'"):
        load(other)
    assert load(other, map_location="cpu").tolist() == [1, 1]


def _replaced(data, old, new):
    """A container with other bytes in its pickle."""
    return _container(_pickle_of(data).replace(old, new), _storages_of(data))


def _pickle_of(data):
    return zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl")


def _storages_of(data):
    archive = zipfile.ZipFile(io.BytesIO(data))
    names = [n for n in archive.namelist() if "/data/" in n]
    return {n.rpartition("/")[2]: archive.read(n) for n in names}


def _container(structure, storages=(), compression=zipfile.ZIP_STORED, **more):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("archive/data.pkl", structure)
        for key, data in dict(storages).items():
            archive.writestr(f"archive/data/{key}", data)
        for name, data in more.items():
            archive.writestr(f"archive/{name}", data)
    return file.getvalue()


def loads(data, **options):
    return load(io.BytesIO(data), **options)


def test_bad_arguments(tmp_path):
    file = io.BytesIO()
    save(1, file)
    for options in (
        {"pickle_module": json_like},
        {"pickle_protocol": 1},
        {"pickle_protocol": 9},
    ):
        with pytest.raises(ValueError, match="save"):
            save(1, io.BytesIO(), **options)
    for protocol in (2, 4, pickle.HIGHEST_PROTOCOL):
        other = io.BytesIO()
        save({"a": clew.ones(2)}, other, pickle_protocol=protocol)
        assert load(io.BytesIO(other.getvalue()))["a"].tolist() == [1, 1]
    with pytest.raises(ValueError, match="pickle_module"):
        load(file, pickle_module=json_like)
    with pytest.raises(ValueError, match="encoding"):
        load(file, encoding="utf-7")
    with pytest.raises(ValueError, match="path"):
        load(file, mmap=True)
    with pytest.raises(TypeError, match="path"):
        load(3)
    with pytest.raises(TypeError, match="path"):
        save(1, 3)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")
    (tmp_path / "text").write_text("abc")
    with open(tmp_path / "text") as text, pytest.raises(TypeError, match="binary"):
        load(text)
    assert load(file, weights_only=True) == load(file, weights_only=False) == 1
    assert load(file, pickle_module=pickle) == 1


json_like = type("Other", (), {})


class Plain:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return type(other) is Plain and self.x == other.x


@pytest.mark.parametrize(
    "value",
    [
        nn.Linear(1, 1),
        lambda: 1,
        object(),
        open,
        Plain(1),
        Plain,
        [Plain(1)],
        np,
        range(3),
        {"a": {"b": Plain(1)}},
    ],
    ids=lambda v: str(type(v)),
)
def test_code_is_not_loaded(value, tmp_path):
    path = tmp_path / "x.pt"
    path.write_bytes(b"before")
    try:
        save(value, path)
    except (pickle.PicklingError, AttributeError, TypeError):  # pickle cannot take it either
        assert path.read_bytes() == b"before"
    else:
        with pytest.raises(pickle.UnpicklingError):
            load(path)


def test_safe_globals():
    file = io.BytesIO()
    with serialization.safe_globals([Plain]):
        assert serialization.get_safe_globals() == [Plain]
        save([Plain(clew.ones(1)), Plain], file)
        back = load(file)
        assert back[0].x.item() == 1 and back[1] is Plain
        assert load(file, weights_only=False)[1] is Plain
    assert serialization.get_safe_globals() == []
    with pytest.raises(pickle.UnpicklingError, match="Plain"):
        load(file)
    assert serialization.get_unsafe_globals_in_checkpoint(file) == [f"{__name__}.Plain"]
    with serialization.safe_globals([(Plain, f"{__name__}.Plain")]):
        assert load(file)[0].x.item() == 1
    with pytest.raises(TypeError):
        serialization.add_safe_globals([3])
    with pytest.raises(TypeError):
        serialization.add_safe_globals([(Plain, 3)])


# Files made to do harm


class Harm:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "call",
    [
        (os.system, ("touch {path}",)),
        (eval, ("open('{path}', 'w')",)),
        (exec, ("open('{path}', 'w')",)),
        (os.mkdir, ("{path}",)),
        (getattr, (os, "mkdir")),
        (open, ("{path}", "w")),
        (zipfile.ZipFile, ("{path}", "w")),
        (clew.save, (1, "{path}")),
    ],
    ids=lambda c: getattr(c[0], "__name__", "?"),
)
@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_executed(call, protocol, tmp_path):
    path = tmp_path / "proof"
    args = tuple(a.format(path=path) if isinstance(a, str) else a for a in call[1])
    if call[0] is getattr:
        args = ("", "join")
    data = pickle.dumps({"a": Harm(call[0], args)}, protocol)
    for weights_only in (None, True):
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            loads(_container(data), weights_only=weights_only)
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            loads(data, weights_only=weights_only)
    try:
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(_container(data)))
    except pickle.UnpicklingError:
        pass  # protocols 0 and 1 use operations that the reader does not know
    assert not path.exists()


def op(*parts):
    return b"\x80\x02" + b"".join(parts) + b"."


def name(module, what):
    return pickle.GLOBAL + f"{module}\n{what}\n".encode()


def text(s):
    return pickle.SHORT_BINUNICODE + bytes([len(s)]) + s.encode()


BAD_PICKLES = {
    "empty": b"",
    "no stop": b"\x80\x02N",
    "nothing on the stack": b"\x80\x02.",
    "protocol 9": b"\x80\x09N.",
    "open mark": op(b"(N"),
    "pop of nothing": op(b"0"),
    "tuple of nothing": op(b"\x86"),
    "reduce of a number": op(b"K\x01)R"),
    "reduce of a text": op(text("os"), b")R"),
    "arguments not a tuple": op(name("collections", "OrderedDict"), b"]R"),
    "build of a dict": op(b"}}b"),
    "build of a name": op(name("torch", "Size"), b"}", text("build"), b"Nsb"),
    "newobj of a function": op(name("torch._utils", "_rebuild_tensor_v2"), b")\x81"),
    "name with dots": op(name("collections", "OrderedDict.fromkeys"), b")R"),
    "stack global": op(text("os"), text("system"), b"\x93"),
    "stack global of numbers": op(b"K\x01K\x02\x93"),
    "inst": op(b"(ios\nsystem\n"),
    "obj": op(b"(", name("collections", "OrderedDict"), b"o"),
    "extension": op(b"\x82\x01"),
    "persid": b"\x80\x02P0\n.",
    "out-of-band buffer": op(b"\x97"),
    "long text": op(b"X\xff\xff\xff\x7fab"),
    "long bytes": op(b"\x8e" + struct.pack("<Q", 2**62)),
    "long bytearray": op(b"\x96" + struct.pack("<Q", 2**62)),
    "long integer": op(b"\x8b" + struct.pack("<i", 2**31 - 1)),
    "negative integer length": op(b"\x8b" + struct.pack("<i", -5)),
    "bad utf-8": op(b"X\x02\x00\x00\x00\xff\xfe"),
    "unknown memo": op(b"h\x07"),
    "list as a key": op(b"}]Ns"),
    "odd items": op(b"}(K\x01u"),
    "append to a tuple": op(b")Na"),
    "set items of a list": op(b"](K\x01K\x02u"),
    "list in a set": op(name("__builtin__", "set"), b"(](K\x01ea(l\x85tR"),
    "size of texts": op(name("torch", "Size"), b"]", text("a"), b"a\x85R"),
    "unfinished line": b"\x80\x02cos",
    "storage without a key": op(b"(", text("storage"), b"tQ"),
    "deep key": op(b"}" + b")" + b"\x85" * 100_000 + b"Ns"),
    "device of a list": op(name("torch", "device"), b"]\x85R"),
    "codec": op(name("_codecs", "encode"), text("a"), text("rot13"), b"\x86R"),
    "dtype of objects": op(name("numpy", "dtype"), text("O8"), b"\x85R"),
    "dtype of fields": op(name("numpy", "dtype"), text("i4,O"), b"\x85R"),
    "scalar too short": op(
        name("numpy.core.multiarray", "scalar"),
        name("numpy", "dtype"),
        text("f8"),
        b"\x85R",
        b"C\x01a\x86R",
    ),
    "array": op(
        name("numpy.core.multiarray", "_reconstruct"),
        name("numpy", "ndarray"),
        b"K\x00\x85C\x01b\x87R(K\x01K\x05\x85",
        name("numpy", "dtype"),
        text("f8"),
        b"\x85R\x89C\x01atb",
    ),
    "counter of a list": op(name("collections", "Counter"), b"](K\x01eK\x02a\x85R"),
    "factory": op(name("collections", "defaultdict"), name("collections", "OrderedDict"), b"\x85R"),
    "complex of a text": op(name("__builtin__", "complex"), text("1"), b"\x85R"),
    "meta tensor of a huge size": op(
        name("torch._utils", "_rebuild_meta_tensor_no_storage"),
        b"(",
        name("torch", "float32"),
        b"\x8a\x09" + (2**64).to_bytes(9, "little"),
        b"\x85",
        b"K\x01\x85\x89tR",
    ),
}


@pytest.mark.parametrize("which", sorted(BAD_PICKLES))
def test_bad_structures(which):
    with pytest.raises(pickle.UnpicklingError, match="load: "):
        loads(_container(BAD_PICKLES[which]))


def test_deep_structures_are_read_without_recursion():
    depth = 200_000
    out = loads(_container(op(b"]" * depth + b"a" * (depth - 1))))
    for _ in range(depth - 1):
        (out,) = out
    assert out == []
    with pytest.raises(RecursionError, match="nested"):
        nested = []
        for _ in range(2000):
            nested = [nested]
        save(nested, io.BytesIO())


def test_shared_references_stay_small():
    """Lists of the same list, thirty deep: 2**30 leaves, thirty objects."""
    body = b"]q\x00" + b"".join(
        b"](" + b"h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(30)
    )
    out = loads(_container(op(body)))
    for _ in range(30):
        assert out[0] is out[1]
        out = out[0]


def tensor_pickle(
    kind="FloatStorage",
    key="0",
    count=4,
    offset=0,
    size=(2,),
    stride=(1,),
    grad=b"\x89",
    location="cpu",
):
    def number(n):
        data = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(data)]) + data

    def numbers(values):
        return b"(" + b"".join(number(v) for v in values) + b"t"

    return op(
        name("torch._utils", "_rebuild_tensor_v2"),
        b"((",
        text("storage"),
        name("torch", kind),
        text(key),
        text(location),
        number(count),
        b"tQ",
        number(offset),
        numbers(size),
        numbers(stride),
        grad,
        name("collections", "OrderedDict"),
        b")RtR",
    )


FOUR = {"0": np.arange(4, dtype=np.float32).tobytes()}


def test_the_tensor_that_the_following_break():
    t = loads(_container(tensor_pickle(), FOUR))
    assert t.tolist() == [0, 1]
    assert loads(_container(tensor_pickle(offset=2), FOUR)).tolist() == [2, 3]


@pytest.mark.parametrize(
    "change",
    [
        {"size": (5,)},
        {"offset": 3},
        {"offset": 2**62},
        {"offset": -1},
        {"stride": (4,)},
        {"stride": (-1,)},
        {"size": (-2,)},
        {"size": (2, 2)},
        {"size": (2**40, 2**40), "stride": (0, 0)},
        {"size": (2**64,)},
        {"stride": (2**63,)},
        {"size": (1,) * 65, "stride": (1,) * 65},
        {"count": 5},
        {"count": -1},
        {"count": 2**61},
        {"key": "1"},
        {"key": "../data.pkl"},
        {"key": ""},
        {"kind": "QInt8Storage"},
        {"kind": "Tensor"},
        {"kind": "DoubleStorage"},
        {"grad": b"K\x01"},
        {"kind": "IntStorage", "grad": b"\x88"},
        {"size": (0,), "offset": 9},
    ],
    ids=str,
)
def test_tensors_stay_within_their_storage(change):
    with pytest.raises((pickle.UnpicklingError, RuntimeError), match="load: "):
        loads(_container(tensor_pickle(**change), FOUR))


def test_large_strides_over_one_element():
    t = loads(_container(tensor_pickle(size=(1, 2**40), stride=(2**62, 0)), FOUR))
    assert t.shape == (1, 2**40) and t[0, 2**39].item() == 0


def test_booleans_are_zero_or_one():
    data = {"0": b"\x00\x01\x02\x01"}
    assert loads(_container(tensor_pickle("BoolStorage"), {"0": b"\0\1\1\1"})).tolist() == [0, 1]
    with pytest.raises(pickle.UnpicklingError, match="neither 0 nor 1"):
        loads(_container(tensor_pickle("BoolStorage"), data))


def test_bad_archives():
    good = _container(tensor_pickle(), FOUR)
    with pytest.raises(RuntimeError, match="compressed"):
        loads(_container(b"\x80\x02N.", {"0": bytes(10**6)}, zipfile.ZIP_DEFLATED))
    with pytest.raises(RuntimeError, match=r"no data\.pkl"):
        file = io.BytesIO()
        zipfile.ZipFile(file, "w").writestr("a", "b")
        loads(file.getvalue())
    with pytest.raises(RuntimeError, match="byte order"):
        loads(_container(tensor_pickle(), FOUR, byteorder=b"big"))
    flipped = bytearray(good)
    flipped[good.index(FOUR["0"]) + 2] ^= 1
    with pytest.raises(RuntimeError, match="checksum"):
        loads(bytes(flipped))
    with pytest.raises(EOFError, match="empty"):
        loads(b"")
    with pytest.raises(RuntimeError, match="neither"):
        loads(b"hello world")
    with pytest.raises(RuntimeError, match="bare pickle"):
        loads(pickle.dumps([1]))
    with pytest.raises(RuntimeError, match="archive"):
        loads(b"PK\x03\x04" + bytes(100))


def test_overlapping_members():
    """Many entries of the directory that point to the same large member."""
    big = bytes(1000)
    data = bytearray(_container(b"\x80\x02N.", {"0": big}))
    end = data.rindex(b"PK\x05\x06")
    (count, _, size, start) = struct.unpack("<HHII", data[end + 8 : end + 20])
    directory = bytes(data[start : start + size])
    entry = directory[directory.index(b"PK\x01\x02", 1) :]
    copies = b"".join(
        entry.replace(b"archive/data/0", f"archive/data/{i}".encode()) for i in range(1, 10)
    )
    tail = bytearray(data[end:])
    struct.pack_into("<HHII", tail, 8, count + 9, count + 9, size + len(copies), start)
    with pytest.raises(RuntimeError, match="overlap"):
        loads(bytes(data[:start]) + directory + copies + bytes(tail))


def test_every_truncation_is_found():
    file = io.BytesIO()
    save({"a": clew.arange(10), "b": ["x", 2.5]}, file)
    data = file.getvalue()
    for n in range(0, len(data) - 1, 7):
        with pytest.raises((RuntimeError, EOFError)):
            loads(data[:n])


ALLOWED = (RuntimeError, pickle.UnpicklingError, EOFError, TypeError, MemoryError)


@pytest.mark.parametrize("seed", range(8))
def test_random_damage(seed):
    """Any change to a file gives an object or a clear exception."""
    rng = random.Random(seed)
    file = io.BytesIO()
    model = nn.Linear(3, 2)
    save({"m": model.state_dict(), "n": np.arange(3), "s": {1, 2}, "t": (1, "a", None)}, file)
    data = file.getvalue()
    structure, storages = _pickle_of(data), _storages_of(data)
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            loads(bytes(damaged))
        except ALLOWED:
            pass
        # Changes of the pickle alone are not caught by a checksum.
        damaged = bytearray(structure)
        for _ in range(rng.randint(1, 3)):
            where = rng.randrange(len(damaged))
            kind = rng.randrange(3)
            if kind == 0:
                damaged[where] = rng.randrange(256)
            elif kind == 1:
                del damaged[where : where + rng.randint(1, 8)]
            else:
                damaged[where:where] = structure[where : where + rng.randint(1, 20)]
        try:
            loads(_container(bytes(damaged), storages))
        except ALLOWED:
            pass


def test_random_opcodes():
    rng = random.Random(0)
    codes = [getattr(pickle, n) for n in dir(pickle) if n.isupper() and len(n) > 2]
    codes = [c for c in codes if isinstance(c, bytes) and len(c) == 1]
    names = [
        name("torch", "Size"),
        name("collections", "OrderedDict"),
        name("numpy", "dtype"),
        name("torch._utils", "_rebuild_tensor_v2"),
        text("f4"),
        b"K\x01",
        b"(",
        b"t",
        b"]",
        b")",
        b"R",
        b"b",
        b"\x81",
    ]
    for _ in range(3000):
        body = b"".join(rng.choice(codes if rng.random() < 0.4 else names) for _ in range(12))
        try:
            loads(_container(op(body)))
        except ALLOWED:
            pass


def safetensors_file(header, data=b"", length=None):
    import json

    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(body) if length is None else length) + body + data


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ({"a": {**GOOD, "shape": [3]}}, bytes(8)),
        ({"a": {**GOOD, "data_offsets": [0, 80]}}, bytes(8)),
        ({"a": {**GOOD, "data_offsets": [8, 0]}}, bytes(8)),
        ({"a": {**GOOD, "data_offsets": [-8, 0]}}, bytes(8)),
        ({"a": {**GOOD, "shape": [-2]}}, bytes(8)),
        ({"a": {**GOOD, "shape": [2.0]}}, bytes(8)),
        ({"a": {**GOOD, "shape": [2**40, 2**40, 0]}}, bytes(8)),
        ({"a": {**GOOD, "dtype": "X9"}}, bytes(8)),
        ({"a": {**GOOD, "dtype": []}}, bytes(8)),
        ({"a": GOOD, "b": GOOD}, bytes(8)),
        ({"a": GOOD}, bytes(16)),
        ({"a": GOOD, "b": {**GOOD, "data_offsets": [16, 24]}}, bytes(24)),
        ({"a": {"dtype": "F32"}}, bytes(8)),
        ({"a": 3}, bytes(8)),
        ({"a": GOOD, "__metadata__": {"x": 3}}, bytes(8)),
        (b'{"a": ', b""),
        (b"{" * 100_000, b""),
        (b'{"a":1,"a":2}', b""),
        ({"a": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}, b"\x01\x05"),
    ],
    ids=lambda v: repr(v)[:60],
)
def test_bad_safetensors(header, data):
    with pytest.raises(pickle.UnpicklingError, match="load: "):
        loads(safetensors_file(header, data))


def test_safetensors_by_hand():
    data = np.array([1.5, 2.5], np.float32).tobytes()
    back = loads(safetensors_file({"a": GOOD, "__metadata__": {"format": "pt"}}, data))
    assert back["a"].tolist() == [1.5, 2.5]
    assert loads(safetensors_file({})) == {}
    for n in range(1, 40):
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            loads(safetensors_file({"a": GOOD}, data)[:n])


@pytest.mark.parametrize(
    "value", [[clew.ones(1)], {"a": 1}, {1: clew.ones(1)}, {"a": clew.ones(1, device="meta")}]
)
def test_safetensors_holds_tensors_only(value, tmp_path):
    with pytest.raises(TypeError, match="save: "):
        save(value, tmp_path / "x.safetensors")


def test_safetensors_library_reads_ours(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    tensors = {
        "a": clew.arange(6.0).reshape(2, 3).t(),
        "b": clew.tensor([True]),
        "c": clew.ones(()),
    }
    save(tensors, tmp_path / "x.safetensors")
    back = library.load_file(tmp_path / "x.safetensors")
    assert (back["a"] == tensors["a"].numpy()).all() and back["b"].tolist() == [True]
    library.save_file({"x": np.arange(3, dtype=np.int16)}, tmp_path / "y.safetensors")
    assert load(tmp_path / "y.safetensors")["x"].tolist() == [0, 1, 2]


def test_members_are_aligned_and_reproducible(tmp_path):
    value = {"a": clew.arange(5), "b": clew.ones(3, dtype=clew.float16), "c": "x" * 1000}
    for path in ("a.pt", "b.pt"):
        save(value, tmp_path / path)
    data = (tmp_path / "a.pt").read_bytes()
    assert data == (tmp_path / "b.pt").read_bytes()
    for info in zipfile.ZipFile(tmp_path / "a.pt").infolist():
        name_length, extra = struct.unpack_from("<HH", data, info.header_offset + 26)
        assert (info.header_offset + 30 + name_length + extra) % 64 == 0
        assert info.CRC == zlib.crc32(zipfile.ZipFile(tmp_path / "a.pt").read(info.filename))


def test_streams_that_cannot_seek():
    file = io.BytesIO()
    save([clew.ones(2)], file)

    class Stream:
        def __init__(self, data):
            self.data = data

        def read(self, n=-1):
            out, self.data = (self.data, b"") if n < 0 else (self.data[:n], self.data[n:])
            return out

    assert load(Stream(file.getvalue()))[0].tolist() == [1, 1]
