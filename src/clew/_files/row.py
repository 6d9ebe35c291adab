"""The writer of the format before the zip container: a row of pickles (see legacy.py)."""

from __future__ import annotations

import pickle
import struct
import sys
from typing import Any

from clew import Tensor

from .encode import Encoder
from .legacy import MAGIC
from .tensors import UNTYPED, width_of

__all__ = ["encode"]

_VERSION = 1001
_MACHINE = {
    "protocol_version": _VERSION,
    "little_endian": sys.byteorder == "little",
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


class _Encoder(Encoder):
    """Storages are named with the part of another one that they are: none is."""

    def _after_count(self) -> None:
        self.save(None)

    def _persistent(self, value: Tensor, untyped: bool = False) -> bool:
        key, dtype = self._storage_keys.get(value._storage_key(), (None, None))
        if key is not None and dtype != value.dtype:
            raise RuntimeError(
                "save: Cannot save multiple tensors or storages that view the same data as "
                f"different types ({dtype} and {value.dtype}) in this format"
            )
        return super()._persistent(value, untyped)


def encode(obj: Any) -> list[Any]:
    """The bytes of the file, in pieces.

    Raises:
        NotData: the object is not plain data.
    """
    encoder = _Encoder()
    structure = encoder.dump(obj)
    dtypes = dict(encoder._storage_keys.values())
    keys = sorted(encoder.storages)
    pieces: list[Any] = [pickle.dumps(part, 2) for part in (MAGIC, _VERSION, _MACHINE)]
    pieces += [structure, pickle.dumps(keys, 2)]
    for key in keys:
        raw = encoder.storages[key]
        width = 1 if dtypes[key] in UNTYPED else width_of(dtypes[key])
        pieces += [struct.pack("<q", raw.numel() // width), raw._array_view().tobytes()]
    return pieces
