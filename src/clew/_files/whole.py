"""Containers of whole objects: modules, dataclasses, whatever Python's pickle can take.

They are written by pickle, with the tensors' bytes outside, and read by its unpickler, which runs
what the file says: only where the caller passed weights_only=False.
"""

from __future__ import annotations

import functools
import io
import pickle
from typing import Any

import clew
from clew import Tensor
from clew._tensor.pickling import _Storage

from . import safe

__all__ = ["dump", "load"]

_MARK = "clew"


class _Writer(pickle.Pickler):
    def __init__(self, file: Any) -> None:
        super().__init__(file, 2)
        self.storages: dict[str, Tensor] = {}
        self._keys: dict[int, str] = {}

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, _Storage):
            return None
        key = self._keys.setdefault(obj.data._storage_key(), str(len(self.storages)))
        self.storages[key] = obj.data
        return "storage", _MARK, key, "cpu", obj.data.numel()


def dump(value: Any) -> tuple[bytes, dict[str, Tensor]]:
    """The pickle of an object, and the storages of its tensors by key."""
    out = io.BytesIO()
    writer = _Writer(out)
    writer.dump(value)
    return out.getvalue(), writer.storages


class _Reader(pickle.Unpickler):
    def __init__(self, reader: Any) -> None:
        super().__init__(io.BytesIO(reader.structure()), encoding=reader.encoding)
        self._reader = reader
        self._storages: dict[str, Any] = {}

    def persistent_load(self, pid: Any) -> Any:
        if hasattr(self._reader, "persistent"):  # a format before the container
            return self._reader.persistent(pid)
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("load: the file gives a storage in an unknown form")
        _, kind, key, location, count = pid
        if key not in self._storages:
            from clew.storage import TypedStorage, UntypedStorage

            dtype = getattr(kind, "dtype", None)
            width = dtype.itemsize if isinstance(dtype, clew.dtype) else 1
            raw = self._reader.storage(key, count * width, location)
            if kind == _MARK:
                self._storages[key] = _Storage(raw)
            elif width == 1 and dtype is None:
                self._storages[key] = UntypedStorage._over(raw)
            else:
                self._storages[key] = TypedStorage(
                    wrap_storage=UntypedStorage._over(raw), dtype=dtype
                )
        return self._storages[key]

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" or module.startswith("torch."):
            found = safe.named_by_torch(module, name)
            if found is None:
                raise pickle.UnpicklingError(f"load: clew has no {module}.{name}")
            if module == "torch.return_types" and hasattr(found, "_make"):
                return functools.partial(_named_results, found)
            return found
        return super().find_class(module, name)


def _named_results(kind: Any, results: Any, _: Any = None) -> Any:
    """A named tuple from a sequence, as PyTorch's are made; clew's take a result each."""
    return kind._make(results)


def load(reader: Any) -> Any:
    """The object in a container; runs what the file says."""
    return _Reader(reader).load()
