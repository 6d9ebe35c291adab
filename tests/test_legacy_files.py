"""Files of the formats before the container, written here byte by byte as PyTorch wrote them."""

import base64
import io
import pickle
import random
import struct
import tarfile
import zipfile
import zlib
from collections import OrderedDict

import numpy as np
import pytest

import clew
from clew import nn, serialization
from clew.serialization import MAP_LOCATION, load
from crafted_files import loads

MAGIC = 0x1950A86A20F9469CFC6C
MACHINE = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
ALL = "Double Float Half Long Int Short Char Byte Bool ComplexFloat ComplexDouble".split()
TYPES = dict(zip(ALL, "f8 f4 f2 i8 i4 i2 i1 u1 ? c8 c16".split()))


class Named:
    """A name in a pickle, by a module that need not exist."""

    def __init__(self, module, name):
        self.line = f"c{module}\n{name}\n".encode()


class Persistent:
    def __init__(self, pid):
        self.pid = pid


class Call:
    def __init__(self, function, *args):
        self.function, self.args = function, args


def written(value):
    """Opcodes that push a value."""
    if isinstance(value, Named):
        return value.line
    if isinstance(value, Persistent):
        return written(value.pid) + b"Q"
    if isinstance(value, Call):
        return written(value.function) + written(tuple(value.args)) + b"R"
    if isinstance(value, tuple):
        return b"(" + b"".join(written(v) for v in value) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(written(v) for v in value) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(written(v) for pair in value.items() for v in pair) + b"u"
    if isinstance(value, bytes):  # a text of Python 2
        return b"U" + struct.pack("<B", len(value)) + value
    return pickle.dumps(value, 2)[2:-1]


def one_pickle(value):
    return b"\x80\x02" + written(value) + b"."


def storage(kind, key, count, view=None, where="cpu"):
    return Persistent(("storage", Named("torch", kind + "Storage"), key, where, count, view))


def tensor_of(of, size, stride, offset=0, grad=False):
    empty = Call(Named("collections", "OrderedDict"))
    rebuild = Named("torch._utils", "_rebuild_tensor_v2")
    return Call(rebuild, of, offset, size, stride, grad, empty)


def row(structure, storages, magic=MAGIC, version=1001, machine=MACHINE, keys=None):
    """A file of the format before 1.6."""
    start = b"".join(map(one_pickle, (magic, version, machine, structure)))
    start += one_pickle(list(storages) if keys is None else keys)
    return start + b"".join(struct.pack("<q", a.size) + a.tobytes() for a in storages.values())


def tar(storages, tensors, structure, views=()):
    """A file of the format before 0.1.10."""
    first = one_pickle(len(storages))
    for key, (kind, values) in storages.items():
        first += one_pickle((key, "cpu", Named("torch", kind + "Storage")))
        first += struct.pack("<q", values.size) + values.tobytes()
    first += one_pickle(list(views))
    second = one_pickle(len(tensors))
    for key, (of, size, stride, offset) in tensors.items():
        second += one_pickle((key, of, Named("torch", "FloatTensor")))
        second += struct.pack("<ii", len(size), 0)
        second += struct.pack(f"<{2 * len(size) + 1}q", *size, *stride, offset)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:") as archive:
        members = (("sys_info", one_pickle(MACHINE)), ("storages", first), ("tensors", second))
        for name, data in (*members, ("pickle", one_pickle(structure))):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def good_row():
    values = np.arange(12, dtype=np.float32)
    a = tensor_of(storage("Float", "7", 12), (2, 3), (1, 4), 1)
    b = tensor_of(storage("Float", "7", 12, ("8", 4, 6)), (6,), (1,), grad=True)
    return row({"a": a, "b": b, "n": [1, "x"]}, {"7": values}), values


def good_tar():
    values = np.arange(6, dtype=np.float32)
    tensors = {11: (1, (2, 2), (3, 1), 1), 12: (2, (3,), (1,), 0)}
    structure = [Persistent(11), {"v": Persistent("12")}]
    return tar({1: ("Float", values)}, tensors, structure, [(2, 1, 2, 3)]), values


def test_views_of_one_storage():
    data, values = good_row()
    got = loads(data)
    assert np.array_equal(
        got["a"].numpy(), np.lib.stride_tricks.as_strided(values[1:], (2, 3), (4, 16))
    )
    assert got["b"].detach().tolist() == [4, 5, 6, 7, 8, 9] and got["b"].requires_grad
    assert got["n"] == [1, "x"]
    got["a"][0, 1] = 50  # element 5 of the storage
    assert got["b"][1].item() == 50


def test_tar_views_of_one_storage():
    data, _ = good_tar()
    first, second = loads(data)
    assert first.tolist() == [[1, 2], [4, 5]] and second["v"].tolist() == [2, 3, 4]
    first[0, 1] = 9
    assert second["v"][0].item() == 9
    assert loads(data, weights_only=False)[1]["v"].tolist() == [2, 3, 4]


@pytest.mark.parametrize("kind", ALL)
def test_every_type(kind):
    values = (np.arange(6) % 2 if kind == "Bool" else np.arange(6) - 2).astype(TYPES[kind])
    got = loads(row(tensor_of(storage(kind, "0", 6), (6,), (1,)), {"0": values}))
    assert got.numpy().dtype == values.dtype and np.array_equal(got.numpy(), values)
    [got] = loads(tar({0: (kind, values)}, {5: (0, (6,), (1,), 0)}, [Persistent(5)]))
    assert got.numpy().dtype == values.dtype and np.array_equal(got.numpy(), values)


def test_empty_and_nothing():
    empty = np.zeros(0, np.float32)
    assert loads(row(tensor_of(storage("Float", "0", 0), (0, 3), (3, 1)), {"0": empty})).shape == (
        0,
        3,
    )
    assert loads(row([1, None], {})) == [1, None]


def test_texts_of_python_2():
    data = row({b"name": "caf\xe9".encode("latin1")}, {})
    assert loads(data, encoding="latin1") == {"name": "café"}
    assert loads(data, encoding="bytes") == {b"name": b"caf\xe9"}
    with pytest.raises(pickle.UnpicklingError, match="utf-8"):
        loads(data)
    assert loads(row({b"name": b"x"}, {})) == {"name": "x"}


def test_state_dict(tmp_path):
    weight = np.arange(6, dtype=np.float32)
    structure = {
        "weight": tensor_of(storage("Float", "1", 6), (3, 2), (2, 1)),
        "bias": tensor_of(storage("Float", "2", 3), (3,), (1,)),
    }
    path = tmp_path / "old.pt"
    path.write_bytes(row(structure, {"2": weight[:3], "1": weight}))
    layer = nn.Linear(2, 3)
    layer.load_state_dict(load(path))
    x = np.array([[1.0, 2.0]], np.float32)
    assert np.allclose(
        layer(clew.tensor(x)).detach().numpy(), x @ weight.reshape(3, 2).T + weight[:3]
    )
    with pytest.raises(RuntimeError, match="mmap"):
        load(path, mmap=True)


def test_whole_module_asks_for_trust():
    kind = Named("torch.nn.modules.activation", "ReLU")
    state = {"training": True, "_parameters": {}, "_modules": {}, "_buffers": {}, "inplace": True}
    pid = Persistent(("module", kind, "activation.py", "class ReLU: ..."))
    body = written(pid) + b")\x81" + written(state) + b"b."
    start = b"".join(map(one_pickle, (MAGIC, 1001, MACHINE)))
    data = start + b"\x80\x02" + body + one_pickle([])
    with pytest.raises(pickle.UnpicklingError, match=r"activation\.ReLU.*weights_only=False"):
        loads(data)
    assert loads(data, weights_only=False)(clew.tensor([-1.0, 2.0])).tolist() == [0, 2]


@pytest.mark.parametrize("make", [lambda s: row(s, {}), lambda s: tar({}, {}, s)])
@pytest.mark.parametrize(
    "module,name", [("os", "system"), ("builtins", "eval"), ("posix", "system")]
)
def test_nothing_is_executed(make, module, name, tmp_path):
    target = tmp_path / "made"
    data = make([Call(Named(module, name), f"touch {target}")])
    with pytest.raises(pickle.UnpicklingError, match="not data"):
        loads(data)
    assert not target.exists()


REFUSED = (RuntimeError, pickle.UnpicklingError, EOFError)


@pytest.mark.parametrize("make", [good_row, good_tar])
def test_every_cut_is_refused(make):
    data, _ = make()
    complete = len(data) if make is good_row else data.rindex(b"e.") + 2
    for length in range(complete):
        with pytest.raises(REFUSED):
            loads(data[:length])


@pytest.mark.parametrize("make", [good_row, good_tar])
def test_damage_gives_the_promised_errors(make):
    data, _ = make()
    dice = random.Random(3)
    used = data.rindex(b"e.") + 2 if make is good_tar else len(data)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(dice.choice((1, 1, 3))):
            damaged[dice.randrange(used)] = dice.randrange(256)
        try:
            loads(bytes(damaged))
        except REFUSED as error:
            assert len(str(error)) < 2000
            refused += 1
    assert refused > 300


def test_sizes_are_checked():
    values = np.arange(12, dtype=np.float32)

    def of(structure, storages=None, **more):
        return row(structure, {"7": values} if storages is None else storages, **more)

    whole = storage("Float", "7", 12)
    for data, message in (
        (of(tensor_of(whole, (13,), (1,))), "ends at element 13"),
        (of(tensor_of(storage("Float", "7", 13), (13,), (1,))), "has 12 elements"),
        (of(tensor_of(storage("Float", "7", 12, ("8", 10, 3)), (3,), (1,))), "of 12 elements"),
        (of(tensor_of(storage("Float", "7", 12, ("8", 1, 2)), (3,), (1,))), "ends at element 3"),
        (of(tensor_of(whole, (2**40,), (0,)))[:-4], "should have 48 bytes"),
        (
            of([tensor_of(whole, (1,), (1,)), tensor_of(storage("Half", "7", 12), (1,), (1,))]),
            "24 byt",
        ),
        (of(tensor_of(whole, (1,), (1,)), {}), "no storage '7'"),
        (of([1]), "is not one of the structure's"),
        (of([1], {}, keys=["a"]), "is not one of the structure's"),
        (of([1], {}, keys=3), "the keys of the storages are 3"),
        (of([1], {}, magic=5), "bare pickle"),
        (of([1], {}, version=1002), "version is 1002"),
        (of([1], {}, machine={"little_endian": False}), "byte order"),
    ):
        with pytest.raises(REFUSED, match=message):
            loads(data)
    with pytest.raises(REFUSED, match="has 6"):
        loads(tar({1: ("Float", values[:6])}, {2: (1, (7,), (1,), 0)}, [Persistent(2)]))
    with pytest.raises(REFUSED, match="asks for tensor 3"):
        loads(tar({1: ("Float", values)}, {2: (1, (7,), (1,), 0)}, [Persistent(3)]))
    with pytest.raises(REFUSED, match="of 12 elements"):
        loads(tar({1: ("Float", values)}, {}, [Persistent(2)], [(2, 1, 5, 8)]))
    with pytest.raises(REFUSED, match="neither 0 nor 1"):
        two = np.array([0, 2], np.uint8)
        loads(row(tensor_of(storage("Bool", "0", 2, ("1", 0, 1)), (1,), (1,)), {"0": two}))


def test_huge_announcements_cost_nothing():
    start = b"".join(map(one_pickle, (MAGIC, 1001, MACHINE)))
    for bomb in (
        b"\x80\x02\x8e" + struct.pack("<Q", 2**40) + b"x.",
        b"\x80\x02X\xff\xff\xff\x7fx.",
    ):
        with pytest.raises(REFUSED):
            loads(start + bomb)
    one = tensor_of(storage("Float", "0", 2**50), (1,), (1,))
    with pytest.raises(REFUSED, match="storage '0' should have"):
        loads(start + one_pickle(one) + one_pickle(["0"]) + struct.pack("<q", 2**50))


def test_map_location_forms():
    values = np.array([1.0, 2.0], np.float32)
    data = row(tensor_of(storage("Float", "0", 2, where="cuda:0"), (2,), (1,)), {"0": values})
    with pytest.raises(RuntimeError, match="cuda:0.*map_location='cpu'"):
        loads(data)
    seen = []

    def keep(storage, location):
        seen.append((type(storage).__name__, storage.nbytes(), location))
        return storage

    for where in ("cpu", b"cpu", clew.device("cpu"), {"cuda:0": "cpu"}, keep):
        assert loads(data, map_location=where).tolist() == [1, 2]
    assert loads(data, map_location=lambda s, where: s.cpu()).tolist() == [1, 2]
    assert seen == [("UntypedStorage", 8, "cuda:0")]
    assert loads(data, map_location="meta").device.type == "meta"
    with pytest.raises(RuntimeError, match="map_location='cpu'"):
        loads(data, map_location={"cuda:1": "cpu"})
    with pytest.raises(RuntimeError, match="map_location='cpu'"):
        loads(data, map_location=lambda s, where: None)
    with pytest.raises(TypeError, match="same size"):
        loads(data, map_location=lambda s, where: clew.UntypedStorage(3))
    assert clew.device in MAP_LOCATION.__args__ and str in MAP_LOCATION.__args__


def test_registered_places(monkeypatch):
    from clew._files import places

    monkeypatch.setattr(places, "_packages", list(places._packages))
    moon = lambda storage, where: storage if where.startswith("moon") else None
    serialization.register_package(30, lambda storage: None, moon)
    values = np.array([3.0], np.float32)
    data = row(tensor_of(storage("Float", "0", 1, where="moon:2"), (1,), (1,)), {"0": values})
    assert loads(data).tolist() == [3]
    assert serialization.location_tag(clew.UntypedStorage(2)) == "cpu"
    serialization.register_package(1, lambda storage: "first", lambda storage, where: None)
    assert serialization.location_tag(clew.UntypedStorage(2)) == "first"
    with pytest.raises(RuntimeError, match="mars"):
        serialization.default_restore_location(clew.UntypedStorage(2), "mars")
    with pytest.raises(TypeError, match="functions"):
        serialization.register_package(1, None, None)


def test_order_is_kept_and_metadata():
    pairs = [("b", 1), ("a", 2)]
    body = written(Call(Named("collections", "OrderedDict"), [list(p) for p in pairs]))
    data = (
        b"".join(map(one_pickle, (MAGIC, 1001, MACHINE)))
        + b"\x80\x02"
        + body
        + b"."
        + one_pickle([])
    )
    assert loads(data) == OrderedDict(pairs) and list(loads(data)) == ["b", "a"]


def test_the_row_of_pickles_is_written_too(tmp_path):
    x = clew.arange(6.0).reshape(2, 3)
    given = {
        "x": x,
        "part": x[1:],
        "half": clew.ones(2, dtype=clew.bfloat16),
        "flags": clew.tensor([True, False]),
        "empty": clew.empty(0),
        "unsigned": clew.tensor([1, 65535], dtype=clew.uint16),
        "complex": clew.tensor([1 + 2j]),
        "parameter": clew.nn.Parameter(clew.ones(2)),
        "rest": [1, "a", None, (2.5,)],
    }
    path, file = tmp_path / "old.pt", io.BytesIO()
    clew.save(given, path, _use_new_zipfile_serialization=False)
    clew.save(given, file, _use_new_zipfile_serialization=False)
    assert path.read_bytes() == file.getvalue() and not zipfile.is_zipfile(path)
    read = io.BytesIO(file.getvalue())
    head = [pickle.load(read) for _ in range(3)]
    assert head[:2] == [0x1950A86A20F9469CFC6C, 1001] and head[2]["type_sizes"]["long"] == 4
    got = clew.load(path)
    assert got["rest"] == given["rest"] and got.keys() == given.keys()
    for name, want in given.items():
        if name != "rest":
            assert got[name].dtype is want.dtype and got[name].tolist() == want.tolist(), name
    assert type(got["parameter"]) is clew.nn.Parameter and got["parameter"].requires_grad
    got["x"][1, 0] = 9
    assert got["part"].tolist() == [[9, 4, 5]]  # still of one storage
    with pytest.raises(RuntimeError, match="different types"):
        clew.save([x, x.view(clew.int32)], io.BytesIO(), _use_new_zipfile_serialization=False)
    with pytest.raises(pickle.PicklingError, match="holds data only"):
        clew.save(clew.nn.Linear(1, 1), path, _use_new_zipfile_serialization=False)
    assert clew.load(path)["rest"] == given["rest"]  # a refusal leaves the file as it was


# What PyTorch 2.13's tensors give to Python's pickle: {"x": arange(6.0).view(2, 3).t(),
# "c": tensor([1 + 2j]).conj(), "b": ones(2) of bfloat16, "u": tensor([65535]) of uint16,
# "p": a parameter with an attribute, "s" and "r": eye(2) as coo and csr, "m": ones(2, 3) on meta,
# "t": the storage of ones(2)}, compressed.
PICKLED = (
    "c-q~U>2upe7{)EzNkEX&7AP%O3kB+O1lw_Za5c0gP~3AvK^#RW^2Sn7BtOzR7X-o~la%|u$_yXjPhf_b&e;DLyIM"
    "PGGInS`#vaYel3%ZOf6u$myIP4aBbL&XSS+>x#blmuS|fU$*-oJ9KAo!DPDN+b4Lo0;%c_W{+A#q?8C9z4j%QT#Y"
    "2TaGrxqCvR3uE@^eWU0RO*T^Dw5h^{($C6ym?u5TK_h$Otk(vG}HX+{DBdE^GxgSgg8e7+06%1^F8L7o}<rEKd?O"
    ")iU`q$`A?3`m_v2yR&2vXyt%5W{4QIpQ9ZDiXn@2rk|}L~-wZ6zXBa5QwFJMiU53GOQcH?XJhzIWa<X0*k4<SqB3"
    "e!dF*!YTf=`Q0w&w^%+r?u_xpXF5$P`EOrA#pg*|AxxBT*ha%aFVvy1Rr}w_wE>8H`=~X|5dO?KnTi#f5189LInr"
    "q8x+SZU%!53=!NE;${N194jZv@dj=wE9FE3x2~C-kV8$z0R`$gze0UlIcb|r#qd#rT@1Go?2d#rvB!$1tb~=+_U|"
    "+uPI$95hc0X<M=mp#9?Nf%L+L3;JDAI%Y?T6gEl&J)f;&RoNwAL-S3=w+n*D2*fO=pVcSj>PJ$DB8tOgAC65JO-p"
    "2Gbd$a{7g<l_<EOuiT3+*mP}-UK+_8?X%Kfa4o@`GJFi?jeE)LOe)tnA44icu3HFSkirj;Ru2BqB@TLj~9)qcvRx"
    "vx5IF+TjxbrbYAIAy|l$;wxwQ@F4Ljjy4t#m#{~1o37!ZsLhz)_=(K1ul6khB0d+oyOkTw(Lyll9(x8TX4-IODZ_"
    "H9geSO|$mL4#J@!=Ozodq!5XKtU~lKskdZl9LfzhN&e?(0P%M2X<35Kj|4BZYWYG|x#PjxmfAJii)U9ACzX=yA-b"
    ";$&13=BZt^7+&C(GePiTBv62tdI%J7g#y}MD=JQP5|8?};n+)tC>p9>rA&8>MX%0l#><fw?J)Uo)ALXcahl-Fy0S"
    "-hnzE;POgCYR>0BXK$YwUzjbwLWH-fpa$=K$P(&HLuh34l7&WE@_K!o9m0zS!4N&~M*-7hk{O7L2T@7}&yIT5pBA"
    "z!>62ipj~#=+W!S=0_qpnRR+jSz1Vyd`VLC9!<omKb%0cL<F3peFegRZL0VW{3&_U1gYVph{pxYsZIeowB-Rec)p"
    "z#JdE}de$H8m#i0+B3&pJvYSLn^e!thn2VC=k>wq+Fe@Z-3A_+B0*LKu2wzAPNQoFjonWp{on*9d15P4>Z^TLF1="
    "|IJ#Slvb?}@w)@xEZYEZKg*@FBrUpSnnCt4(j`BBi!XcX5%A1jdgEJ_+$DK`33MAuxU>F>;SsBe-m}o#XQmUl4rB"
    "@Kpm}6MPdH$1J|>QFQr^$mncOT~F`q^6*{zm06t@vmE6w(ckm_`8(VX{Ed!Rf*;oyej@le>Ym}3zLc<(O<%u+BDl"
    "MRzX}O|BltbU6@owNBmV(t)ZP9"
)


def test_pythons_pickles_of_pytorchs_tensors():
    from clew._cli import run

    run.install()
    try:
        found = pickle.loads(zlib.decompress(base64.b85decode(PICKLED)))
    finally:
        run.uninstall()
    assert found["x"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert found["x"].stride() == (1, 3)
    assert found["c"].tolist() == [1 - 2j]
    assert found["b"].dtype is clew.bfloat16 and found["b"].tolist() == [1.0, 1.0]
    assert found["u"].dtype is clew.uint16 and found["u"].tolist() == [65535]
    assert type(found["p"]) is clew.nn.Parameter and found["p"].requires_grad
    assert found["p"].tolist() == [7.0] and found["p"].tag == "weight"
    for name, layout in (("s", clew.sparse_coo), ("r", clew.sparse_csr)):
        assert found[name].layout is layout
        assert found[name].to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert found["m"].is_meta and found["m"].shape == (2, 3)
    assert type(found["t"]) is clew.TypedStorage and found["t"].tolist() == [1.0, 1.0]
