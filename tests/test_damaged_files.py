"""Files that are damaged, or were made by hand: each gives an object or a clear exception."""

import io
import pickle
import random
import struct
import zipfile

import numpy as np
import pytest

import clew
from clew import nn
from clew.serialization import save
from crafted_files import container, loads, name, number, op, pickle_of, storages_of, text

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
        loads(container(BAD_PICKLES[which]))


def test_deep_structures_are_read_without_recursion():
    depth = 200_000
    out = loads(container(op(b"]" * depth + b"a" * (depth - 1))))
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
    out = loads(container(op(body)))
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
    t = loads(container(tensor_pickle(), FOUR))
    assert t.tolist() == [0, 1]
    assert loads(container(tensor_pickle(offset=2), FOUR)).tolist() == [2, 3]


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
        loads(container(tensor_pickle(**change), FOUR))


def test_large_strides_over_one_element():
    t = loads(container(tensor_pickle(size=(1, 2**40), stride=(2**62, 0)), FOUR))
    assert t.shape == (1, 2**40) and t[0, 2**39].item() == 0


def test_booleans_are_zero_or_one():
    data = {"0": b"\x00\x01\x02\x01"}
    assert loads(container(tensor_pickle("BoolStorage"), {"0": b"\0\1\1\1"})).tolist() == [0, 1]
    with pytest.raises(pickle.UnpicklingError, match="neither 0 nor 1"):
        loads(container(tensor_pickle("BoolStorage"), data))


def test_bad_archives():
    good = container(tensor_pickle(), FOUR)
    with pytest.raises(RuntimeError, match="compressed"):
        loads(container(b"\x80\x02N.", {"0": bytes(10**6)}, zipfile.ZIP_DEFLATED))
    with pytest.raises(RuntimeError, match=r"no data\.pkl"):
        file = io.BytesIO()
        zipfile.ZipFile(file, "w").writestr("a", "b")
        loads(file.getvalue())
    with pytest.raises(RuntimeError, match="byte order"):
        loads(container(tensor_pickle(), FOUR, byteorder=b"big"))
    flipped = bytearray(good)
    flipped[good.index(FOUR["0"]) + 2] ^= 1
    with pytest.raises(RuntimeError, match="checksum"):
        loads(bytes(flipped))
    with pytest.raises(EOFError, match="empty"):
        loads(b"")
    with pytest.raises(RuntimeError, match="bare pickle"):
        loads(pickle.dumps([1]))
    with pytest.raises(RuntimeError, match="archive"):
        loads(b"PK\x03\x04" + bytes(100))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"hello world", "begins with b'hello world'"),
        (bytes(2000), r"begins with b'\\x00"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><html></html>", "a web page"),
        (b"<html>", "a web page"),
        (b"\x93NUMPY\x01\0v\0{}", r"numpy\.load"),
        (b"\x1f\x8b\x08\0\0\0\0", "unpack it"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b'{"a": 1}', "begins with"),
    ],
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_of_another_kind(data, told, weights_only):
    """PyTorch 2.13 raises UnpicklingError for all of these."""
    with pytest.raises(pickle.UnpicklingError, match=f"neither one made by save.*{told}"):
        clew.load(io.BytesIO(data), weights_only=weights_only)


def test_overlapping_members():
    """Many entries of the directory that point to the same large member."""
    big = bytes(1000)
    data = bytearray(container(b"\x80\x02N.", {"0": big}))
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
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
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
    structure, storages = pickle_of(data), storages_of(data)
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
            loads(container(bytes(damaged), storages))
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
            loads(container(op(body)))
        except ALLOWED:
            pass
