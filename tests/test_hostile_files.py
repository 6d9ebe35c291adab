"""Files made to do harm: none kills or stalls the process, whatever it costs to refuse it."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import textwrap
import time
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest

import clew
from clew._files.construct import NAMES
from clew._files.limits import shown
from clew.serialization import load, save
from crafted_files import container, number, op

ROOT = Path(__file__).parent.parent


def name(full):
    module, _, last = full.rpartition(".")
    return pickle.GLOBAL + f"{module}\n{last}\n".encode()


def refuse(structure, storages=None, seconds=5.0):
    """The message with which a structure is refused, in processor time that allows for tracing."""
    data = container(structure, storages)
    began = time.process_time()
    with pytest.raises((pickle.UnpicklingError, RuntimeError)) as caught:
        load(io.BytesIO(data))
    assert time.process_time() - began < seconds
    text = str(caught.value)
    assert len(text) < 1000
    return text


# A tuple of two of the same tuple, a hundred levels deep, on top of the stack: 2**100 leaves.
DOUBLED = (
    pickle.EMPTY_TUPLE
    + pickle.TUPLE1
    + b"".join(
        pickle.BINPUT + bytes([i]) + b"0" + 2 * (pickle.BINGET + bytes([i])) + pickle.TUPLE2
        for i in range(100)
    )
)

DEEP = """
    import io, sys
    import clew
    from test_hostile_files import container, name, op
    n = int(sys.argv[2])
    one = b"q\\xfe0h\\xfe)R"
    new = name("collections.defaultdict")
    if sys.argv[1] == "inside first":
        body = new + b"q\\xfe0" + b"h\\xfe)RN" * n + b"h\\xfe)R" + b"s" * n
    elif sys.argv[1] == "outside first":
        # Each is set into the last one, which is then left.
        body = new + b"q\\xfe0h\\xfe)Rq\\x00q\\x01" + b"Nh\\xfe)Rq\\x02s0h\\x02" * n + b"0h\\x00"
    elif sys.argv[1] == "dropped":
        body = new + b"q\\xfe0" + b"h\\xfe)RN" * n + b"h\\xfe)R" + b"s" * n + b"0K\\x01"
    elif sys.argv[1] == "damaged":
        body = new + b"q\\xfe0" + b"h\\xfe)RN" * n + b"h\\xfe)R" + b"s" * n + b"\\xff"
    elif sys.argv[1] == "circle":
        body = new + b"q\\xfe0h\\xfe)Rq\\x00" + b"Nh\\xfe)R" * n + b"Nh\\x00s" + b"s" * n
    try:
        out = clew.load(io.BytesIO(container(op(body))))
        print("loaded", type(out).__name__)
        del out
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.parametrize("how", ["inside first", "outside first", "dropped", "damaged", "circle"])
def test_deep_defaultdicts(how):
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DEEP), how, "100000"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "tests"), *sys.path))},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("UnpicklingError load: ")


def test_defaultdicts_of_defaultdicts_are_loaded():
    value = defaultdict(dict, {i: defaultdict(int, {1: i}) for i in range(3000)})
    deep = current = defaultdict(dict)
    for _ in range(150):
        current["next"] = defaultdict(dict)
        current = current["next"]
    file = io.BytesIO()
    save([value, deep], file)
    out, below = load(file)
    assert out == value and isinstance(out[5], defaultdict)
    for _ in range(150):
        below = below["next"]
    assert below == {}


@pytest.mark.parametrize("function", sorted(n for n, v in NAMES.items() if v.build is not None))
def test_doubled_tuples_as_arguments(function):
    used = b"\x80\x02" + DOUBLED + b"q\xfe0"
    for count in (1, 2, 3, 6, 7):
        for other in (b"h\xfe", b"K\x01", name("torch.float32"), name("numpy.ndarray")):
            for first in (b"h\xfe", other):
                args = first + other * (count - 2) + b"h\xfe" if count > 1 else b"h\xfe"
                data = container(used + name(function) + b"(" + args + b"tR0N.")
                began = time.process_time()
                try:
                    load(io.BytesIO(data))
                except (pickle.UnpicklingError, RuntimeError) as error:
                    assert len(str(error)) < 1000
                assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "body",
    [
        b"Q",  # a storage
        b"q\xfe0}h\xfeNs",  # a key
        b"q\xfe0}(h\xfeNu",
        b"q\xfe0}Nh\xfeb",  # a state
        b"q\xfe0" + name("collections.OrderedDict") + b")Rh\xfeb",
        b"q\xfe0" + name("numpy.dtype") + b"X\x02\x00\x00\x00f4\x85Rh\xfeb",
        b"q\xfe0h\xfe)R",  # called
        b"q\xfe0h\xfe)\x81",
        b"q\xfe0h\xfeh\xfe\x93",  # a name
        b"q\xfe0](h\xfeu",
        b"q\xfe0\x8f(h\xfe\x90",
        b"q\xfe0(h\xfe\x91",
        b"q\xfe0(X\x07\x00\x00\x00storageh\xfeh\xfeh\xfeh\xfetQ",
        b"q\xfe0(X\x07\x00\x00\x00storage"
        + name("torch.FloatStorage")
        + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuh\xfetQ",
        b"q\xfe0h\xfe\x85" * 30 + b"}h\xfeNs",
    ],
)
def test_doubled_tuples_elsewhere(body):
    refuse(op(DOUBLED, body))


@pytest.mark.parametrize("place", ["offset", "size", "stride", "grad", "hooks"])
def test_doubled_tuples_in_tensors(place):
    parts = {"offset": b"K\x00", "size": b"K\x02\x85", "stride": b"K\x01\x85", "grad": b"\x89"}
    parts["hooks"] = b"}"
    storage = (
        b"(X\x07\x00\x00\x00storage"
        + name("torch.FloatStorage")
        + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
    )
    whole = dict(parts)
    for change in (b"h\xfe", b"h\xfe\x85"):
        parts = {**whole, place: change}
        structure = op(
            DOUBLED,
            b"q\xfe0",
            name("torch._utils._rebuild_tensor_v2"),
            b"(",
            storage,
            *parts.values(),
            b"tR",
        )
        if place == "hooks":
            assert load(io.BytesIO(container(structure, {"0": bytes(8)}))).tolist() == [0, 0]
        else:
            refuse(structure, {"0": bytes(8)})


def call(function, argument, times):
    """A list of the results of calling a function many times with the same argument."""
    return op(
        name(function),
        b"q\xfd0",
        argument,
        b"\x85q\xfc0](",
        b"h\xfdh\xfcR" * times,
        b"e",
    )


BIG_TUPLE = b"(" + b"K\x01" * 100_000 + b"t"
BIG_BYTES = b"B" + struct.pack("<I", 1 << 20) + bytes(1 << 20)
BIG_TEXT = b"X" + struct.pack("<I", 1 << 20) + b"a" * (1 << 20)
BIG_DICT = b"}(" + b"".join(number(i) + b"N" for i in range(50_000)) + b"u"


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        ("builtins.bytearray", BIG_BYTES),
        ("_codecs.encode", BIG_TEXT),
        ("builtins.set", BIG_TUPLE),
        ("builtins.frozenset", BIG_TUPLE),
        ("torch.Size", BIG_TUPLE),
        ("collections.Counter", BIG_DICT),
    ],
)
def test_copies_are_counted(function, argument):
    assert "again and again" in refuse(call(function, argument, 3000))
    out = load(io.BytesIO(container(call(function, argument, 3))))
    assert len(out) == 3 and out[0] == out[1] and out[0] is not out[1]


def test_states_are_counted():
    new = name("collections.OrderedDict") + b"q\xfd0"
    refuse(op(new, BIG_DICT, b"q\xfc0](", b"h\xfd)Rh\xfcb" * 10_000, b"e"))
    refuse(op(BIG_TEXT, b"q\xfc0](", b"h\xfch\xfc\x930" * 10_000, b"e"))


def test_keys_of_one_hash():
    same = [number(k * (2**61 - 1)) for k in range(1, 40_000)]
    assert "same hash" in refuse(op(b"}(" + b"".join(k + b"N" for k in same) + b"u"))
    assert "same hash" in refuse(op(b"}" + b"".join(k + b"Ns" for k in same)))
    assert "same hash" in refuse(op(name("builtins.set"), b"(" + b"".join(same) + b"l\x85R"))
    assert "same hash" in refuse(op(b"\x8f(" + b"".join(same) + b"\x90"))
    pairs = b"".join(k + b"N\x86" for k in same)
    assert "same hash" in refuse(op(name("collections.OrderedDict"), b"(" + pairs + b"l\x85R"))


def test_ordinary_keys_are_loaded():
    value = {
        "ints": {i << 40: i for i in range(5000)},
        "floats": {i / 7: i for i in range(5000)},
        "tuples": {(i, str(i), (i, None)): i for i in range(5000)},
        "set": {complex(i, -i) for i in range(2000)},
        "frozen": {frozenset((i, i + 1)): i for i in range(2000)},
    }
    file = io.BytesIO()
    save(value, file)
    assert load(file) == value


def test_equal_bytes_are_no_copies():
    value = [bytes(bytearray(b"x" * (1 << 20))) for _ in range(100)]
    file = io.BytesIO()
    save(value, file)
    assert load(file) == value


def tensor(size, stride, count, kind="FloatStorage", meta=b""):
    def sizes(values):
        return b"(" + b"".join(number(v) for v in values) + b"t"

    return (
        name("torch._utils._rebuild_tensor_v2")
        + b"((X\x07\x00\x00\x00storage"
        + name(f"torch.{kind}")
        + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
        + number(count)
        + b"tQK\x00"
        + sizes(size)
        + sizes(stride)
        + b"\x89}"
        + meta
        + b"tR"
    )


def test_sizes_that_overflow():
    big = 2**62
    for size, stride in (
        ((big, 4), (0, 0)),
        ((0, big, 4), (0, 0, 0)),
        ((2, 2), (big, big)),
        ((2**32, 2**32), (0, 0)),
        ((1,) * 65, (1,) * 65),
        ((2**64,), (1,)),
    ):
        refuse(op(tensor(size, stride, 2)), {"0": bytes(8)})
    for what in (b"conj", b"neg"):
        meta = b"}X" + struct.pack("<I", len(what)) + what + b"\x88s"
        refuse(op(tensor((2**40,), (0,), 1, "ComplexFloatStorage", meta)), {"0": bytes(8)})
    expanded = load(io.BytesIO(container(op(tensor((2**40,), (0,), 1)), {"0": bytes(4)})))
    assert expanded.shape == (2**40,) and expanded[5].item() == 0


def test_many_views_of_one_storage_of_bools():
    structure = op(b"](", tensor((1,), (1,), 1 << 22, "BoolStorage") * 2000, b"e")
    data = container(structure, {"0": bytes(1 << 22)})
    began = time.process_time()
    out = load(io.BytesIO(data))
    assert len(out) == 2000 and time.process_time() - began < 10
    bad = container(structure, {"0": bytes((1 << 22) - 1) + b"\x02"})
    with pytest.raises(pickle.UnpicklingError, match="neither 0 nor 1"):
        load(io.BytesIO(bad))


def test_long_names_and_numbers():
    assert len(refuse(op(b"c" + b"a" * 100_000 + b"\nb\n"))) < 300
    long_number = b"\x8b" + struct.pack("<i", 1 << 20) + b"\x01" * (1 << 20)
    refuse(op(name("torch.Size"), long_number, b"\x85R"))
    assert load(io.BytesIO(container(op(long_number)))).bit_length() == (1 << 23) - 7


@pytest.mark.parametrize(
    "header",
    [
        "[" * 1_000_000,
        '{"a":' * 1_000_000,
        '{"a": ' + "9" * 1_000_000 + "}",
        '{"' + "a" * 1_000_000 + '": 3}',
        json.dumps({"a": {"dtype": "F32", "shape": [2**61] * 64, "data_offsets": [0, 8]}}),
        json.dumps({"a": {"dtype": "F32", "shape": [1] * 100_000, "data_offsets": [0, 8]}}),
        json.dumps({"a": {"dtype": "F32", "shape": [0, 2**61, 64], "data_offsets": [0, 0]}}),
        json.dumps({"a": {"dtype": "x" * 100_000, "shape": [], "data_offsets": [0, 8]}}),
    ],
)
def test_hostile_safetensors(header):
    text = header.encode()
    if not text.startswith(b"{"):
        text = b"{" + text
    began = time.process_time()
    with pytest.raises((pickle.UnpicklingError, RuntimeError)) as caught:
        load(io.BytesIO(struct.pack("<Q", len(text)) + text + bytes(8)))
    assert time.process_time() - began < 5 and len(str(caught.value)) < 1000


def test_zip_bombs():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 24))
    with pytest.raises(RuntimeError, match="compressed"):
        load(io.BytesIO(file.getvalue()))
    # Entries of the directory that all stand for the same bytes.
    data = bytearray(container(op(b"N"), {str(i): bytes(1000) for i in range(50)}))
    at, first = data.find(b"PK\x01\x02"), None
    while at >= 0:
        if b"/data/" in data[at : at + 80]:
            first = data[at + 42 : at + 46] if first is None else first
            data[at + 42 : at + 46] = first
            data[at + 20 : at + 28] = struct.pack("<II", 40_000, 40_000)
        at = data.find(b"PK\x01\x02", at + 1)
    with pytest.raises(RuntimeError, match="overlap"):
        load(io.BytesIO(bytes(data)))


def test_a_mapped_file_that_is_too_short(tmp_path):
    path = tmp_path / "a.pt"
    save({"a": clew.arange(100_000)}, path)
    whole = path.read_bytes()
    for cut in (100, 5000, len(whole) // 2, len(whole) - 10):
        path.write_bytes(whole[:cut])
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            load(path, mmap=True)
    # What save() puts in its place leaves the mapped file alone.
    path.write_bytes(whole)
    mapped = load(path, mmap=True)["a"]
    save({"a": clew.zeros(1)}, path)
    assert mapped.sum().item() == sum(range(100_000))


def test_what_messages_show():
    class Odd:
        def __repr__(self):
            raise AssertionError("asked for its text")

    nested = ()
    for _ in range(100):
        nested = (nested, nested)
    for value in (nested, [nested], Odd(), "x" * 10**6, b"x" * 10**6, 1 << 10**6, {1: nested}):
        assert len(shown(value)) < 200
    assert shown((1, 2.5, None)) == "(1, 2.5, None)" and shown("a") == "'a'"


def test_the_fuzzer_of_files_finds_nothing():
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "fuzz_files.py"), "--files", "150", "--seed", "3"],
        capture_output=True,
        text=True,
        timeout=250,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "150 files, 0 did" in run.stdout
