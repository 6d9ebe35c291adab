"""Saving and loading: what comes back, what is refused, and that nothing is executed."""

import bz2
import collections
import gzip
import io
import lzma
import os
import pickle
import struct
import zipfile
import zlib
from fractions import Fraction

import numpy as np
import pytest

import clew
from clew import nn, serialization
from clew.serialization import load, save
from computed_dtypes import DTYPES
from crafted_files import container, loads, pickle_of, storages_of


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
    clew.sparse_coo,
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
    return container(pickle_of(data).replace(old, new), storages_of(data))


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
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        with pytest.raises(TypeError, match="path"):
            save(1, 3, **options)
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
            loads(container(data), weights_only=weights_only)
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            loads(data, weights_only=weights_only)
    try:
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(container(data)))
    except pickle.UnpicklingError:
        pass  # protocols 0 and 1 use operations that the reader does not know
    assert not path.exists()


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


class Written:
    """A file that only writes, a few bytes at a time, and says how many."""

    def __init__(self):
        self.content = io.BytesIO()

    def write(self, data):
        return self.content.write(bytes(data[:5]))


class Unsought(io.BytesIO):
    """A file that says that it can seek, and fails."""

    def seek(self, *args):
        raise ValueError("negative seek")


@pytest.mark.parametrize("kind", [Written, Unsought])
def test_streams_that_can_only_be_written(kind):
    file = kind()
    save({"a": clew.arange(3), "b": [1.5]}, file)
    data = (file.content if kind is Written else file).getvalue()
    assert loads(data)["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_compressed_files(tmp_path, module, zipped):
    path = tmp_path / "compressed"
    value = {"a": clew.arange(1000), "b": "x"}
    with module.open(path, "wb") as file:
        save(value, file, _use_new_zipfile_serialization=zipped)
        save([clew.ones(2)], file, _use_new_zipfile_serialization=zipped)
    assert path.stat().st_size < 5000
    with module.open(path, "rb") as file:
        assert clew.equal(load(file)["a"], value["a"])
        assert load(file, weights_only=False)[0].tolist() == [1.0, 1.0]
        assert file.read() == b""


def test_a_file_that_appends(tmp_path):
    path = tmp_path / "appended"
    path.write_bytes(b"a line before\n")
    with open(path, "ab") as file:
        save([clew.ones(2)], file)
    with open(path, "rb") as file:
        file.readline()
        assert load(file)[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("trusted", [True, False])
def test_objects_that_stand_one_after_the_other_in_a_file(tmp_path, zipped, trusted):
    objects = [clew.ones(3), {"a": clew.arange(2)}, clew.zeros(2, 2)]
    path = tmp_path / "several"
    with open(path, "wb") as file:
        file.write(b"a line before\n")
        for x in objects:
            clew.save(x, file, _use_new_zipfile_serialization=zipped)
    with open(path, "rb") as file:
        assert file.readline() == b"a line before\n"
        first, second, third = (clew.load(file, weights_only=not trusted) for _ in objects)
        assert file.read() == b""
    assert first.tolist() == [1.0, 1.0, 1.0]
    assert second["a"].tolist() == [0, 1]
    assert third.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_row_of_pickles_leaves_the_file_behind_itself():
    file = io.BytesIO()
    clew.save(clew.ones(3), file, _use_new_zipfile_serialization=False)
    file.write(b"more")
    file.seek(0)
    clew.load(file)
    assert file.read() == b"more"


def test_what_stands_behind_an_archive_can_be_read():
    file = io.BytesIO()
    clew.save([1], file)
    pickle.dump({"a": 1}, file)
    clew.save([Fraction(1, 2)], file)
    file.seek(0)
    assert clew.load(file) == [1] and pickle.load(file) == {"a": 1}
    at = file.tell()
    unsafe = clew.serialization.get_unsafe_globals_in_checkpoint(file)
    assert unsafe == ["fractions.Fraction"] and file.tell() == at
    assert clew.load(file, weights_only=False) == [Fraction(1, 2)]


def noted(tensor, **attributes):
    for name, value in {"note": 1, "_mark": "m", **attributes}.items():
        setattr(tensor, name, value)
    return tensor


NOTED = {
    "tensor": lambda: noted(clew.arange(3.0)),
    "leaf": lambda: noted(clew.arange(3.0).requires_grad_()),
    "view": lambda: noted(clew.arange(6).view(2, 3)[:, 1:]),
    "unsigned": lambda: noted(clew.arange(3, dtype=clew.uint16)),
    "meta": lambda: noted(clew.empty(3, device="meta")),
    "parameter": lambda: noted(nn.Parameter(clew.arange(3.0))),
    "buffer": lambda: noted(nn.Buffer(clew.arange(3.0), persistent=False)),
    "sparse": lambda: noted(clew.eye(2).to_sparse()),
    "compressed": lambda: noted(clew.eye(2).to_sparse_csr()),
}


@pytest.mark.parametrize("name", NOTED)
def test_attributes_of_tensors_are_kept(name):
    given = NOTED[name]()
    value = {"a": given, "b": [given, clew.ones(2)]}
    file = io.BytesIO()
    save(value, file, _use_new_zipfile_serialization=False)
    for loaded in (
        trip(value),
        trip(value, weights_only=False),
        load(io.BytesIO(file.getvalue())),
    ):
        got = loaded["a"]
        assert type(got) is type(given) and got is loaded["b"][0] and got.note == 1
        assert got.shape == given.shape and got.requires_grad == given.requires_grad
        sparse = name in ("sparse", "compressed")  # whose own parts have such names
        assert hasattr(got, "_mark") is not sparse
        if name == "buffer":
            assert got.persistent is False
        if name != "meta":
            assert clew.equal(got.to_dense(), given.to_dense())
        assert not loaded["b"][1].__dict__


def test_attributes_may_be_any_data_and_are_refused_like_it():
    x = noted(clew.ones(2), other=clew.zeros(3), sizes=[(1, 2)], kind=clew.float64)
    x.again = [x.other]
    got = trip(x)
    assert got.other.tolist() == [0, 0, 0] and got.again[0] is got.other
    assert got.sizes == [(1, 2)] and got.kind is clew.float64
    x.odd = Fraction(1, 2)
    with pytest.raises(pickle.UnpicklingError, match="Fraction"):
        trip(x)
    assert trip(x, weights_only=False).odd == Fraction(1, 2)
    with serialization.safe_globals([Fraction]):
        assert trip(x).odd == Fraction(1, 2)
    del x.odd
    x.self = x
    for options in ({}, {"weights_only": False}):
        got = trip(x, **options)
        assert got.self is got


def from_type(state, times=1):
    """Tensors with attributes as PyTorch writes them; the state is written once."""
    name = lambda text: pickle.GLOBAL + text.encode()
    part = (
        name("torch._tensor\n_rebuild_from_type_v2\n")
        + pickle.MARK
        + name("torch._utils\n_rebuild_meta_tensor_no_storage\n")
        + name("torch\nTensor\n")
        + pickle.MARK
        + name("torch\nfloat32\n")
        + pickle.EMPTY_TUPLE * 2
        + pickle.NEWFALSE
        + pickle.TUPLE
    )
    made = pickle.PROTO + b"\x02" + pickle.dumps(state, 2)[2:-1] + pickle.BINPUT + b"\xff"
    made += pickle.POP + pickle.MARK
    for _ in range(times):
        made += part + pickle.BINGET + b"\xff" + pickle.TUPLE + pickle.REDUCE
    return container(made + pickle.LIST + pickle.STOP)


def test_attributes_in_damaged_files():
    assert loads(from_type({"note": 2}))[0].note == 2
    for state in ([1], {1: 2}, ({"a": 1}, {"b": 2}), "text"):
        with pytest.raises(pickle.UnpicklingError, match="attributes of a tensor"):
            loads(from_type(state))
    many = {f"name {i}": i for i in range(10_000)}
    with pytest.raises(pickle.UnpicklingError, match="copies of the same values"):
        loads(from_type(many, 20_000))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("trusted", [False, True])
def test_storages_are_data(zipped, trusted):
    a = clew.arange(6.0)
    part = a.untyped_storage()[4:8]
    value = [a, a.storage(), {"k": a[2:].storage()}, (clew.BoolStorage([True, False]),), part]
    file = io.BytesIO()
    save(value, file, _use_new_zipfile_serialization=zipped)
    got = load(io.BytesIO(file.getvalue()), weights_only=not trusted)
    whole, again, alone = got[1], got[2]["k"], got[3][0]
    assert [type(s) for s in (whole, again, alone)] == [clew.TypedStorage] * 3
    assert (whole.dtype, alone.dtype) == (clew.float32, clew.bool)
    assert (whole.tolist(), alone.tolist()) == ([0, 1, 2, 3, 4, 5], [True, False])
    got[0].fill_(7)
    assert whole.tolist() == again.tolist() == [7.0] * 6
    # Bytes come back as a storage of bytes, and a slice as a storage of its own.
    assert bytes(got[4].tolist()) == struct.pack("<f", 1.0)
    raw = trip(a.untyped_storage(), weights_only=not trusted)
    assert bytes(raw.tolist()) == np.arange(6, dtype=np.float32).tobytes()
    both = trip([a.untyped_storage(), a[1:]], weights_only=not trusted)
    both[0].fill_(0)
    assert both[1].tolist() == [0.0] * 5


def test_storages_without_bytes_are_refused():
    with pytest.raises(pickle.PicklingError, match="no bytes"):
        save(clew.empty(3, device="meta").untyped_storage(), io.BytesIO())
