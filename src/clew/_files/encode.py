"""The pickle of a container: plain data and tensors become opcodes, tensors' bytes stay outside.

Only what `decode.py` reads back is written; anything else is refused when saving. The result is
a protocol 2 pickle, as PyTorch writes it.
"""

from __future__ import annotations

import codecs
import pickle
import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, cast

import numpy as np

import clew
from clew import Tensor
from clew._base.dtypes import STORAGE_NAMES
from clew._base.settling import settle
from clew.storage import TypedStorage, UntypedStorage

from .safe import is_allowed
from .tensors import UNTYPED, width_of

_FACTORIES = {dict: "dict", list: "list", int: "int", float: "float", str: "str", set: "set"}
_BATCH = 1000
_LONG = 1000


class NotData(pickle.PicklingError):
    """An object is not plain data."""


class Encoder:
    """Writes one object; `storages` then holds what tensors it needs, by key."""

    def __init__(self) -> None:
        self.out = bytearray(pickle.PROTO + b"\x02")
        self.storages: dict[str, Tensor] = {}  # key: a uint8 tensor over the whole storage
        self._storage_keys: dict[int, tuple[str, Any]] = {}  # storage: its key and first dtype
        self._memo: dict[int, tuple[int, Any]] = {}  # the object is kept, so that ids stay unique
        self._globals: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._within: set[int] = set()  # tensors that are being written
        self._kept: list[Tensor] = []  # what the keys of storages are of, so that they stay unique
        self._count = 0

    def dump(self, value: Any) -> bytes:
        """The pickle of `value`."""
        try:
            self.save(value)
        except RecursionError:
            raise RecursionError("save: the object is nested too deeply") from None
        self.out += pickle.STOP
        return bytes(self.out)

    # pieces

    def _remember(self) -> int:
        n = self._count
        self._count += 1
        self.out += pickle.BINPUT + bytes([n]) if n < 256 else pickle.LONG_BINPUT + _u32(n)
        return n

    def _recall(self, n: int) -> None:
        self.out += pickle.BINGET + bytes([n]) if n < 256 else pickle.LONG_BINGET + _u32(n)

    def _memoize(self, value: Any) -> None:
        self._memo[id(value)] = (self._remember(), value)

    def name(self, module: str, name: str) -> None:
        """A reference to a name, which the reader resolves by its list of allowed ones."""
        full = f"{module} {name}"
        if full in self._globals:
            self._recall(self._globals[full])
            return
        self.out += pickle.GLOBAL + f"{module}\n{name}\n".encode()
        self._globals[full] = self._remember()

    def save(self, value: Any) -> None:
        """Writes one value."""
        known = self._memo.get(id(value))
        if known is not None:
            self._recall(known[0])
            return
        self._save(value)

    def _save(self, value: Any) -> None:
        kind = type(value)
        method = _WRITERS.get(kind)
        if method is not None:
            method(self, value)
        elif isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, (np.generic, np.ndarray, np.dtype)):
            self._numpy(value)
        elif isinstance(value, (TypedStorage, UntypedStorage)):
            self._storage(value)
        elif value is np.ndarray:
            self.name("numpy", "ndarray")
        elif isinstance(value, type) and is_allowed(value):
            self.name(value.__module__, value.__qualname__)
        elif is_allowed(kind):
            self._reduce(value, value.__reduce_ex__(2))
        else:
            _refuse(value)

    def _none(self, value: None) -> None:
        self.out += pickle.NONE

    def _bool(self, value: bool) -> None:
        self.out += pickle.NEWTRUE if value else pickle.NEWFALSE

    def _int(self, value: int) -> None:
        if 0 <= value < 256:
            self.out += pickle.BININT1 + bytes([value])
        elif 0 <= value < 65536:
            self.out += pickle.BININT2 + struct.pack("<H", value)
        elif -(2**31) <= value < 2**31:
            self.out += pickle.BININT + struct.pack("<i", value)
        else:
            data = pickle.encode_long(value)
            if len(data) < 256:
                self.out += pickle.LONG1 + bytes([len(data)]) + data
            else:
                self.out += pickle.LONG4 + struct.pack("<i", len(data)) + data

    def _float(self, value: float) -> None:
        self.out += pickle.BINFLOAT + struct.pack(">d", value)

    def _complex(self, value: complex) -> None:
        self._call("__builtin__", "complex", (value.real, value.imag))

    def _str(self, value: str) -> None:
        if value in self._texts:
            self._recall(self._texts[value])
            return
        data = value.encode("utf-8", "surrogatepass")
        self.out += pickle.BINUNICODE + _u32(len(data)) + data
        self._texts[value] = self._remember()

    def _bytes(self, value: bytes) -> None:
        # Protocol 2 has no bytes: the text of the same code points is encoded when loading.
        text = codecs.latin_1_decode(value)[0]
        if len(value) > _LONG:
            # Not the text of equal bytes again: the reader counts copies of the same values.
            self.name("_codecs", "encode")
            data = text.encode()
            self.out += pickle.MARK + pickle.BINUNICODE + _u32(len(data)) + data
            self.save("latin1")
            self.out += pickle.TUPLE + pickle.REDUCE
        elif value:
            self._call("_codecs", "encode", (text, "latin1"))
        else:
            self._call("__builtin__", "bytes", ())
        self._memoize(value)

    def _bytearray(self, value: bytearray) -> None:
        self._call("__builtin__", "bytearray", (bytes(value),) if value else ())
        self._memoize(value)

    def _tuple(self, value: tuple[Any, ...]) -> None:
        n = len(value)
        if n > 3:
            self.out += pickle.MARK
        for item in value:
            self.save(item)
        known = self._memo.get(id(value))
        if known is not None:  # the tuple contains itself, and is complete by now
            self.out += pickle.POP_MARK if n > 3 else pickle.POP * n
            self._recall(known[0])
            return
        self.out += (
            pickle.EMPTY_TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.TUPLE
        )[min(n, 4)]  # fmt: skip
        if n:
            self._memoize(value)

    def _list(self, value: list[Any]) -> None:
        self.out += pickle.EMPTY_LIST
        self._memoize(value)
        for start in range(0, len(value), _BATCH):
            self.out += pickle.MARK
            for item in value[start : start + _BATCH]:
                self.save(item)
            self.out += pickle.APPENDS

    def _items(self, value: dict[Any, Any]) -> None:
        items = list(value.items())
        for start in range(0, len(items), _BATCH):
            self.out += pickle.MARK
            for key, item in items[start : start + _BATCH]:
                self.save(key)
                self.save(item)
            self.out += pickle.SETITEMS

    def _dict(self, value: dict[Any, Any]) -> None:
        self.out += pickle.EMPTY_DICT
        self._memoize(value)
        self._items(value)

    def _ordered_dict(self, value: OrderedDict[Any, Any]) -> None:
        self._call("collections", "OrderedDict", ())
        self._memoize(value)
        self._items(value)
        if getattr(value, "_metadata", None) is not None:  # of a module's state_dict
            self.save({"_metadata": value._metadata})  # type: ignore[attr-defined]
            self.out += pickle.BUILD

    def _counter(self, value: Counter[Any]) -> None:
        self._call("collections", "Counter", (dict(value),))
        self._memoize(value)

    def _defaultdict(self, value: defaultdict[Any, Any]) -> None:
        factory = value.default_factory
        if factory is not None and factory not in _FACTORIES:
            _refuse(factory, "as the factory of a defaultdict")
        self.name("collections", "defaultdict")
        if factory is None:
            self.out += pickle.EMPTY_TUPLE
        else:
            self.name("__builtin__", _FACTORIES[factory])  # type: ignore[index]
            self.out += pickle.TUPLE1
        self.out += pickle.REDUCE
        self._memoize(value)
        self._items(value)

    def _set(self, value: set[Any] | frozenset[Any]) -> None:
        self._call("__builtin__", type(value).__name__, (list(value),))
        self._memoize(value)

    def _slice(self, value: slice) -> None:
        self._call("__builtin__", "slice", (value.start, value.stop, value.step))

    def _size(self, value: Any) -> None:
        self._call("torch", "Size", (tuple(value),))
        self._memoize(value)

    def _device(self, value: Any) -> None:
        args = (value.type,) if value.index is None else (value.type, value.index)
        self._call("torch", "device", args)
        self._memoize(value)

    def _layout(self, value: Any) -> None:
        self._call("torch.serialization", "_get_layout", (f"torch.{value._name}",))
        self._memoize(value)

    def _dtype(self, value: Any) -> None:
        self.name("torch", str(value).rpartition(".")[2])

    def _call(self, module: str, name: str, args: tuple[Any, ...]) -> None:
        self.name(module, name)
        self._arguments(args)
        self.out += pickle.REDUCE

    def _arguments(self, args: tuple[Any, ...]) -> None:
        """A fresh tuple; it is not memoized, since it does not outlive this call."""
        self.out += pickle.MARK
        for arg in args:
            self.save(arg)
        self.out += pickle.TUPLE

    def _reduce(self, value: Any, reduced: Any) -> None:
        """An object by its own `__reduce__`; allowed classes and NumPy's objects only."""
        if not isinstance(reduced, tuple):
            _refuse(value)
        function, args, state, items, pairs = (*reduced, None, None, None)[:5]
        if getattr(function, "__name__", "") == "__newobj__":
            self.name(args[0].__module__, args[0].__qualname__)
            self._arguments(args[1:])
            self.out += pickle.NEWOBJ
        else:
            self.name(function.__module__, function.__qualname__)
            self._arguments(args)
            self.out += pickle.REDUCE
        self._memoize(value)
        if items is not None:
            for item in items:
                self.save(item)
                self.out += pickle.APPEND
        if pairs is not None:
            for key, item in pairs:
                self.save(key)
                self.save(item)
                self.out += pickle.SETITEM
        if state is not None:
            self.save(state)
            self.out += pickle.BUILD

    def _numpy(self, value: Any) -> None:
        dtype = value if isinstance(value, np.dtype) else value.dtype
        if dtype.kind not in "biufcSU" or dtype.fields is not None:
            _refuse(value, f"of dtype {dtype}")
        if isinstance(value, np.ndarray):
            value = value if value.flags.c_contiguous else value.copy("C")
        self._reduce(value, value.__reduce__())

    # tensors

    def _storage(self, value: TypedStorage | UntypedStorage) -> None:
        """A storage by itself; tensors over it that are saved with it share it again."""
        typed = not isinstance(value, UntypedStorage)
        data = value._elements if typed else value._bytes  # type: ignore[union-attr]
        if data.device.type == "meta":
            raise pickle.PicklingError("save: a storage on meta has no bytes to save")
        settle(data)
        width = data.dtype.itemsize
        if data.storage_offset() or data.numel() != data._storage_bytes().numel() // width:
            data = data.clone()  # a slice of another storage: alone, as a storage is
        self._persistent(data, untyped=not typed)
        self._memoize(value)
        self._kept.append(data)

    def _persistent(self, value: Tensor, untyped: bool = False) -> bool:
        """The storage of a tensor; True if it has been written with another dtype before."""
        key, dtype = self._storage_keys.get(value._storage_key(), (None, None))
        if key is None:
            key, dtype = str(len(self.storages)), value.dtype
            self._storage_keys[value._storage_key()] = (key, dtype)
            self.storages[key] = value._storage_bytes()
        raw = self.storages[key]
        mixed = untyped or dtype != value.dtype or value.dtype in UNTYPED
        self.out += pickle.MARK
        self.save("storage")
        if mixed:
            self.name("torch.storage", "UntypedStorage")
        else:
            self.name("torch", STORAGE_NAMES[value.dtype])
        self.save(key)
        self.save("cpu")
        self.save(raw.numel() // (1 if mixed else width_of(value.dtype)))
        self._after_count()
        self.out += pickle.TUPLE + pickle.BINPERSID
        return mixed

    def _after_count(self) -> None:
        """For a format that says more of a storage."""

    def _rebuild(self, value: Tensor, requires_grad: bool, state: Any = None) -> None:
        """A tensor of its parts, with attributes of its own if there are any."""
        size, stride = tuple(value.shape), tuple(value.stride())
        if value.device.type == "meta":
            name = "_rebuild_meta_tensor_no_storage"
            parts = value.dtype, size, stride, requires_grad
            self._made(name, lambda: self._arguments(parts), state)
            return
        if value.dtype not in STORAGE_NAMES and value.dtype not in UNTYPED:
            _refuse(value, f"of dtype {value.dtype}")
        key = self._storage_keys.get(value._storage_key())
        mixed = value.dtype in UNTYPED or (key is not None and key[1] != value.dtype)

        def arguments() -> None:
            self.out += pickle.MARK
            self._persistent(value)
            self.save(value.storage_offset())
            self.save(size)
            self.save(stride)
            self.save(requires_grad)
            self._call("collections", "OrderedDict", ())  # hooks, which are not saved
            if mixed:
                self.save(value.dtype)
            self.out += pickle.TUPLE

        self._made("_rebuild_tensor_v3" if mixed else "_rebuild_tensor_v2", arguments, state)

    def _made(self, name: str, arguments: Callable[[], None], state: Any) -> None:
        """What a function makes of the arguments that are written then, with attributes."""
        if not state:
            self.name("torch._utils", name)
            arguments()
        else:
            self.name("torch._tensor", "_rebuild_from_type_v2")
            self.out += pickle.MARK
            self.name("torch._utils", name)
            self.name("torch", "Tensor")
            arguments()
            self.save(state)
            self.out += pickle.TUPLE
        self.out += pickle.REDUCE

    def _attributes(self, value: Tensor) -> dict[str, Any]:
        """What the program has set on a tensor."""
        kind = type(value)
        if hasattr(kind, "_saved_parts"):  # whose parts are attributes, too
            own: dict[str, Any] = cast(Any, value)._own_attributes()
            return own
        return {**value.__dict__, **({"_is_buffer": True} if kind is clew.nn.Buffer else {})}

    def _tensor(self, value: Tensor) -> None:
        kind = type(value)
        if hasattr(kind, "_distributed_parts"):
            self._call(
                "clew.distributed.tensor._saving",
                "rebuilt",
                cast(Any, value)._distributed_parts(),
            )
            self._memoize(value)
            return
        if id(value) in self._within:
            _refuse(value, "that is an attribute of its own")
        self._within.add(id(value))
        if not hasattr(kind, "_saved_parts"):
            settle(value)  # else its storage would seem to be another one's
        if kind is Tensor or kind is clew.nn.Buffer:
            if value.requires_grad:
                clew.utils.hooks.warn_if_has_hooks(value)
            self._rebuild(value.detach(), bool(value.requires_grad), self._attributes(value))
        elif kind is clew.nn.Parameter:
            state = self._attributes(value)
            name = "_rebuild_parameter_with_state" if state else "_rebuild_parameter"
            self.name("torch._utils", name)
            self.out += pickle.MARK
            self._rebuild(value.detach(), False)
            self.save(value.requires_grad)
            self._call("collections", "OrderedDict", ())
            if state:
                self.save(state)
            self.out += pickle.TUPLE + pickle.REDUCE
        elif hasattr(kind, "_saved_parts"):  # sparse and ragged tensors
            parts: Any = value
            layout, data = parts._saved_parts()

            def arguments() -> None:
                self.out += pickle.MARK
                self._call("torch.serialization", "_get_layout", (f"torch.{layout}",))
                self.save(data)
                self.out += pickle.TUPLE

            self._made("_rebuild_sparse_tensor", arguments, self._attributes(value))
        else:
            _refuse(value)
        self._within.remove(id(value))
        self._memoize(value)


def _u32(n: int) -> bytes:
    if n >= 2**32:
        raise OverflowError(f"save: a text or the number of objects is too large: {n}")
    return struct.pack("<I", n)


def _refuse(value: Any, why: str = "") -> None:
    kind = type(value)
    raise NotData(
        f"save: cannot save {kind.__module__}.{kind.__qualname__} {why}".rstrip()
        + "; a file holds tensors, numbers, strings and containers of them, never code. Of a "
        "module or an optimizer save its state_dict(); for a class of your own see "
        "clew.serialization.add_safe_globals"
    )


_WRITERS: dict[Any, Any] = {
    type(None): Encoder._none,
    bool: Encoder._bool,
    int: Encoder._int,
    float: Encoder._float,
    complex: Encoder._complex,
    str: Encoder._str,
    bytes: Encoder._bytes,
    bytearray: Encoder._bytearray,
    tuple: Encoder._tuple,
    list: Encoder._list,
    dict: Encoder._dict,
    OrderedDict: Encoder._ordered_dict,
    Counter: Encoder._counter,
    defaultdict: Encoder._defaultdict,
    set: Encoder._set,
    frozenset: Encoder._set,
    slice: Encoder._slice,
    clew.Size: Encoder._size,
    clew.device: Encoder._device,
    clew.dtype: Encoder._dtype,
    clew.layout: Encoder._layout,
}
