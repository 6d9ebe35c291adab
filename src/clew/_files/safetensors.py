"""The safetensors format: a JSON header with names, dtypes and shapes, then the bytes."""

from __future__ import annotations

import json
import math
import os
import struct
from pickle import UnpicklingError
from typing import Any

import clew
from clew import Tensor

from .archive import file_size
from .limits import shown
from .tensors import buffer_of, view_of, width_of

_NAMES: dict[Any, str] = {
    clew.bool: "BOOL",
    clew.uint8: "U8",
    clew.uint16: "U16",
    clew.uint32: "U32",
    clew.uint64: "U64",
    clew.int8: "I8",
    clew.int16: "I16",
    clew.int32: "I32",
    clew.int64: "I64",
    clew.float16: "F16",
    clew.bfloat16: "BF16",
    clew.float32: "F32",
    clew.float64: "F64",
    clew.complex64: "C64",
    clew.float8_e4m3fn: "F8_E4M3",
    clew.float8_e5m2: "F8_E5M2",
    clew.float8_e8m0fnu: "F8_E8M0",
    clew.float8_e4m3fnuz: "F8_E4M3FNUZ",
    clew.float8_e5m2fnuz: "F8_E5M2FNUZ",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_MAX_HEADER = 100_000_000


def write(tensors: Any, file: Any, metadata: dict[str, str] | None = None) -> None:
    """Writes a dict of tensors to an open file; tensors that share memory are written each."""
    if not isinstance(tensors, dict):
        raise TypeError(f"save: a safetensors file holds a dict of tensors; got {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise TypeError(f"save: names in a safetensors file must be strings; got {name!r}")
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"save: a safetensors file holds tensors only; {name!r} is a "
                f"{type(tensor).__name__}. Another suffix holds any plain data"
            )
        if tensor.dtype not in _NAMES:
            raise TypeError(f"save: safetensors has no dtype for {tensor.dtype} of {name!r}")
        if tensor.device.type == "meta":
            raise TypeError(f"save: {name!r} is on the meta device and has no bytes")
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    # Wide elements first: then every tensor's bytes are aligned to its element.
    order = sorted(tensors, key=lambda name: (-width_of(tensors[name].dtype), name))
    at = 0
    for name in order:
        tensor = tensors[name]
        size = tensor.numel() * width_of(tensor.dtype)
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for name in order:
        flat = tensors[name].detach().contiguous().reshape(-1)
        if flat.numel():
            file.write(buffer_of(flat._reinterpret(clew.uint8)))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise UnpicklingError("load: a name comes twice in the safetensors header")
    return out


def _integer(digits: str) -> int:
    if len(digits) > 20:  # reading a number takes the square of its length
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _damaged(text: str) -> UnpicklingError:
    return UnpicklingError(f"load: {text}; the safetensors file is damaged")


def read_header(file: Any) -> tuple[dict[str, Any], dict[str, str], int]:
    """What the header says of each tensor, the metadata, and where the bytes begin."""
    total = file_size(file)
    file.seek(0)
    head = file.read(8)
    if len(head) != 8:
        raise _damaged("the header is cut off")
    (length,) = struct.unpack("<Q", head)
    if length > min(_MAX_HEADER, total - 8):
        raise _damaged(f"the header should have {length} bytes; the file has {total}")
    try:
        header = json.loads(
            file.read(length).decode("utf-8"), object_pairs_hook=_pairs, parse_int=_integer
        )
    except (ValueError, RecursionError) as error:
        raise _damaged(f"the header is not JSON ({str(error)[:200]})") from error
    if not isinstance(header, dict):
        raise _damaged("the header is not an object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _damaged("the metadata is not a mapping of strings")
    start = 8 + length
    spans = []
    for name, entry in header.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise _damaged(f"the entry of {shown(name)} is incomplete")
        if not isinstance(entry["dtype"], str) or entry["dtype"] not in _DTYPES:
            raise UnpicklingError(
                f"load: the dtype {shown(entry['dtype'])} of {shown(name)} is not known"
            )
        shape, offsets = entry["shape"], entry["data_offsets"]
        for values in (shape, offsets):
            if not isinstance(values, list) or not all(
                type(v) is int and 0 <= v < 2**62 for v in values
            ):
                raise _damaged(f"the shape or place of {shown(name)} is not a list of sizes")
        if len(offsets) != 2 or len(shape) > 64:
            raise _damaged(f"the shape or place of {shown(name)} has a wrong length")
        size = width_of(_DTYPES[entry["dtype"]]) * math.prod(shape)
        if offsets[1] - offsets[0] != size or start + offsets[1] > total:
            raise _damaged(
                f"{shown(name)} of shape {shown(shape)} does not fit its place {shown(offsets)}"
            )
        spans.append((offsets[0], offsets[1]))
    end = 0
    for begin, stop in sorted(spans):
        if begin != end:
            raise _damaged("tensors overlap or leave holes")
        end = stop
    if start + end != total:
        raise _damaged(f"there are {total - start - end} bytes too many")
    return header, metadata, start


def read(file: Any, place: Any, path: str | None = None) -> dict[str, Tensor]:
    """The tensors of an open file, by name."""
    header, _, start = read_header(file)
    out = {}
    for name, entry in header.items():
        begin, stop = entry["data_offsets"]
        dtype = _DTYPES[entry["dtype"]]
        raw = _bytes(file, start + begin, stop - begin, path)
        shape = tuple(entry["shape"])
        stride: list[int] = []
        n = 1
        for size in reversed(shape):
            stride.insert(0, n)
            n *= max(size, 1)
        raw = place(raw, "cpu")
        out[name] = view_of(raw, dtype, shape, tuple(stride), 0, f"tensor {shown(name)}")
    return out


def _bytes(file: Any, start: int, size: int, path: str | None) -> Tensor:
    if path is not None and size:
        import numpy as np

        return clew.from_numpy(np.asarray(np.memmap(path, np.uint8, "c", start, (size,))))
    raw = clew._C.empty(size, dtype=clew.uint8, device="cpu")
    file.seek(start)
    if size:
        data = file.read(size)
        if len(data) != size:
            raise _damaged("the file ends early")
        buffer_of(raw)[:] = data
    return raw


def is_safetensors(head: bytes, total: int) -> bool:
    """Whether a file that begins with these bytes may be of this format."""
    if len(head) < 9:
        return False
    (length,) = struct.unpack("<Q", head[:8])
    return bool(2 <= length <= total - 8 and head[8:9] == b"{")


def has_suffix(path: Any) -> bool:
    """Whether a path asks for this format."""
    return os.fspath(path).endswith(".safetensors") if path is not None else False
