"""Files of the safetensors format: read, written, and refused where they are wrong."""

import json
import pickle
import struct

import numpy as np
import pytest

import clew
from clew.serialization import load, save
from crafted_files import loads


def safetensors_file(header, data=b"", length=None):
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
