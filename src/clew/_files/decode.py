"""The reader of a container's pickle: it builds plain data and tensors, and never runs code.

It is not Python's unpickler: it knows the opcodes of data only, and a name in the file is looked
up in a list kept in `construct.py`, not imported. Sizes in the file are checked before they are
believed.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy as np

from clew import _C, Tensor
from clew._base.dtypes import STORAGE_DTYPES

from . import safe
from .construct import (
    DTYPES,
    NAMES,
    Name,
    collection,
    np_set_state,
    set_attributes,
    storage_of,
)
from .limits import Budget, fail, shown

_LONGEST_NAME = 1000
_FUNCTIONS = "clew._namespace._find_function"  # what functions of the native module are found by


class _OutsideError(Exception):
    """Carries an error of the function that gives storages past the handling of damaged files."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Decoder:
    """Reads one pickle.

    Args:
        data: the pickle.
        storage: gives the bytes of a storage, as a uint8 tensor, for (key, bytes, location).
        encoding: of the texts of Python 2, which are bytes; "bytes" to leave them so.
    """

    def __init__(
        self,
        data: bytes,
        storage: Callable[[str, int, str], Tensor],
        encoding: str = "utf-8",
    ) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.storage = storage
        self.user = safe.by_name()
        self.encoding = encoding
        self.unknown: list[str] | None = None  # collects names instead of refusing them
        self.budget = Budget(len(data))

    def load(self) -> Any:
        """The object."""
        try:
            return self._load_what_can_be_freed()
        except UnpicklingError:
            raise
        except _OutsideError as outside:  # not about the file: as it was raised
            raise outside.error from None
        except (
            IndexError,
            KeyError,
            ValueError,
            TypeError,
            struct.error,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            what = f"{type(error).__name__}: {error}"[:300]
            raise UnpicklingError(
                f"load: the structure cannot be read ({what}); the file is damaged or was not "
                "made by save"
            ) from error

    def _load_what_can_be_freed(self) -> Any:
        try:
            value = self._load()
            self.budget.check_nesting()
            return value
        except BaseException:
            self.budget.take_apart()
            raise

    def _load(self) -> Any:
        data, size = self.data, len(self.data)
        while self.at < size:
            code = data[self.at]
            self.at += 1
            if code == 46:  # STOP
                if self.marks:
                    fail("an opening mark is not closed")
                return self.stack.pop()
            step = _STEPS.get(code)
            if step is None:
                fail(f"operation {bytes([code])!r} at byte {self.at - 1} is not one of data")
            step(self)
        fail("the structure ends before it is complete")

    # reading

    def take(self, n: int) -> bytes:
        """The next `n` bytes."""
        end = self.at + n
        if n < 0 or end > len(self.data):
            fail(f"{n} bytes are announced at byte {self.at}; {len(self.data) - self.at} are left")
        out = self.data[self.at : end]
        self.at = end
        return out

    def line(self) -> str:
        """The text up to the end of the line."""
        end = self.data.find(b"\n", self.at)
        if end < 0:
            fail("a line does not end")
        out = self.data[self.at : end].decode("utf-8")
        self.at = end + 1
        return out

    def number(self, layout: str, n: int) -> Any:
        """The next number, by its `struct` layout."""
        return struct.unpack(layout, self.take(n))[0]

    def until_mark(self) -> list[Any]:
        """What was pushed since the last mark."""
        items = self.stack
        self.stack = self.marks.pop()
        return items

    # names and calls

    def find(self, module: str, name: str) -> Any:
        """What a name in the file stands for."""
        if len(module) + len(name) > _LONGEST_NAME:
            fail(f"a name has {len(module) + len(name)} characters")
        full = f"{module}.{name}"
        if full in DTYPES:
            return DTYPES[full]
        if full in NAMES:
            return NAMES[full]
        if full in self.user:
            return self.user[full]  # itself: it may also be a value of what was saved
        if full == _FUNCTIONS:
            return Name(full, self._function)
        if self.user and module.split(".")[0] == "torch":  # a module that PyTorch saved
            found = safe.named_by_torch(module, name)
            if found is not None and safe.is_allowed(found):
                return found
        return self._refused(full)

    def _refused(self, full: str) -> Any:
        if self.unknown is not None:
            self.unknown.append(full)
            return Name(full, lambda *args: None)
        raise UnpicklingError(
            f"load: the file asks for {full!r}, which is not data. clew never runs code from a "
            "file unless told to: save state_dict() rather than whole objects; if you trust this "
            "class, allow it with clew.serialization.add_safe_globals([...]); if you trust the "
            "file, pass weights_only=False"
        )

    def _function(self, name: Any) -> Any:
        """A function of the native module, such as a layer's activation, if the user allows it."""
        if not isinstance(name, str):
            fail(f"a function is named {shown(name)}")
        found = _C.functions.get(name)
        if found is not None and safe.is_allowed(found):
            return found
        return self._refused(f"clew.{name}")

    def _named(self, value: Any) -> Any:
        """What the user has allowed as a name that may be called; anything else as it is."""
        if isinstance(value, Name) or not any(value is allowed for allowed in self.user.values()):
            return value
        return Name(getattr(value, "__qualname__", repr(value)), value, value)

    def push_call(self) -> None:
        """REDUCE"""
        args = self.stack.pop()
        function = self._named(self.stack.pop())
        if not isinstance(function, Name) or function.build is None or type(args) is not tuple:
            fail(f"{shown(function)} cannot be called")
        self.budget.copy(args)
        if function.keys is not None:
            for key in function.keys(*args):
                self.budget.check_key(key, args)
        self.stack.append(function.build(*args))

    def push_new(self) -> None:
        """NEWOBJ"""
        args = self.stack.pop()
        kind = self._named(self.stack.pop())
        if not isinstance(kind, Name) or type(args) is not tuple:
            fail(f"{shown(kind)} is not a class")
        self.budget.copy(args)
        if isinstance(kind.user, type):
            self.stack.append(kind.user.__new__(kind.user, *args))
        elif kind.build is not None and self.unknown is not None:
            self.stack.append(None)
        elif kind.name in ("collections.OrderedDict", "collections.Counter") and not args:
            self.stack.append(kind.build())  # type: ignore[misc]
        else:
            fail(f"{shown(kind)} is not a class")

    def build(self) -> None:
        """BUILD"""
        state = self.stack.pop()
        value = self.stack[-1]
        if isinstance(value, OrderedDict) and not safe.is_allowed(type(value)):
            if isinstance(state, dict) and (
                not state or (len(state) == 1 and "_metadata" in state)
            ):
                value.__dict__.update(state)
            elif state is not None:
                fail("an OrderedDict has unknown attributes")
        elif isinstance(value, (np.ndarray, np.dtype)):
            self.budget.copy(state if isinstance(state, tuple) else ())
            np_set_state(value, state)
        elif type(value) is Tensor:
            self.budget.copy((state,))
            set_attributes(value, state)
        elif safe.is_allowed(type(value)):
            _set_user_state(value, state)
        elif self.unknown is None:
            fail(f"a {type(value).__name__} has a state")

    def put(self, n: int) -> None:
        """Keeps the top of the stack under a number."""
        self.memo[n] = self.stack[-1]

    def set_items(self, target: Any, items: list[Any]) -> None:
        """SETITEMS"""
        if not isinstance(target, dict) or len(items) % 2:
            if self.unknown is not None:
                return
            fail(f"items are set in a {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2]):
            self.budget.check_key(key, target)
            self.budget.note_value(target, value)
            target[key] = value

    def append(self, target: Any, items: list[Any]) -> None:
        """APPENDS"""
        if not isinstance(target, list):
            if self.unknown is not None:
                return
            fail(f"items are appended to a {type(target).__name__}")
        target.extend(items)

    def add(self, target: Any, items: list[Any]) -> None:
        """ADDITEMS"""
        if not isinstance(target, set):
            fail(f"items are added to a {type(target).__name__}")
        for item in items:
            self.budget.check_key(item, target)
        target.update(items)

    def persistent(self) -> None:
        """BINPERSID"""
        pid = self.stack.pop()
        if type(pid) is not tuple or len(pid) != 5 or pid[0] != "storage":
            fail(f"a storage is given as {shown(pid)}")
        _, kind, key, location, count = pid
        own = kind == "clew"  # as files of whole objects say
        if not (own or isinstance(kind, Name)) or not isinstance(key, str):
            fail(f"a storage is given as {shown(pid)}")
        if not isinstance(location, str):
            fail(f"a storage is given as {shown(pid)}")
        if type(count) is not int or not 0 <= count < 2**60:
            fail(f"a storage has {shown(count)} elements")
        short = "UntypedStorage" if own else kind.name.rpartition(".")[2]
        if short == "UntypedStorage":
            dtype, width = None, 1
        elif short in STORAGE_DTYPES:
            dtype = STORAGE_DTYPES[short]
            width = dtype.itemsize
        else:
            fail(f"a storage has type {shown(kind)}")
        try:
            raw = self.storage(key, count * width, location)
        except Exception as error:
            raise _OutsideError(error) from None
        self.stack.append(storage_of(raw, dtype))


def _set_user_state(value: Any, state: Any) -> None:
    """The state of an object whose class the user has allowed, as Python's pickle sets it."""
    set_state = getattr(value, "__setstate__", None)
    if set_state is not None:
        set_state(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        value.__dict__.update(state)
    for key, item in (slots or {}).items():
        setattr(value, key, item)


def _binary(layout: str, n: int) -> Callable[[Decoder], None]:
    return lambda d: d.stack.append(d.number(layout, n))


def _text(layout: str, n: int) -> Callable[[Decoder], None]:
    return lambda d: d.stack.append(d.take(d.number(layout, n)).decode("utf-8", "surrogatepass"))


def _raw(layout: str, n: int, kind: Any = bytes) -> Callable[[Decoder], None]:
    return lambda d: d.stack.append(kind(d.take(d.number(layout, n))))


def _old_text(layout: str, n: int) -> Callable[[Decoder], None]:
    def step(d: Decoder) -> None:
        raw = d.take(d.number(layout, n))
        d.stack.append(raw if d.encoding == "bytes" else raw.decode(d.encoding))

    return step


def _long(layout: str, n: int) -> Callable[[Decoder], None]:
    return lambda d: d.stack.append(
        int.from_bytes(d.take(d.number(layout, n)), "little", signed=True)
    )


def _constant(make: Callable[[], Any]) -> Callable[[Decoder], None]:
    return lambda d: d.stack.append(make())


def _mark(d: Decoder) -> None:
    d.marks.append(d.stack)
    d.stack = []


def _short_tuple(n: int) -> Callable[[Decoder], None]:
    def step(d: Decoder) -> None:
        if len(d.stack) < n:
            fail("a tuple is incomplete")
        items = tuple(d.stack[-n:])
        del d.stack[-n:]
        d.stack.append(items)

    return step


def _one(method: str) -> Callable[[Decoder], None]:
    def step(d: Decoder) -> None:
        item = d.stack.pop()
        getattr(d, method)(d.stack[-1], [item])

    return step


def _many(method: str) -> Callable[[Decoder], None]:
    def step(d: Decoder) -> None:
        items = d.until_mark()
        getattr(d, method)(d.stack[-1], items)

    return step


def _set_item(d: Decoder) -> None:
    value = d.stack.pop()
    key = d.stack.pop()
    d.set_items(d.stack[-1], [key, value])


def _global(d: Decoder) -> None:
    module = d.line()
    d.stack.append(d.find(module, d.line()))


def _stack_global(d: Decoder) -> None:
    name = d.stack.pop()
    module = d.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        fail("a name is not a text")
    d.stack.append(d.find(module, name))


def _frozen(d: Decoder) -> None:
    items = d.until_mark()
    for item in items:
        d.budget.check_key(item, items)
    d.stack.append(collection(frozenset)(items))


def _proto(d: Decoder) -> None:
    version = d.number("<B", 1)
    if version > 5:
        fail(f"the pickle has protocol {version}")


_STEPS: dict[int, Callable[[Decoder], None]] = {
    code[0]: step
    for code, step in (
        (pickle.PROTO, _proto),
        (pickle.FRAME, lambda d: d.take(8) and None),
        (pickle.MARK, _mark),
        (pickle.POP, lambda d: d.stack.__delitem__(-1)),
        (pickle.POP_MARK, lambda d: d.until_mark() and None),
        (pickle.NONE, _constant(lambda: None)),
        (pickle.NEWTRUE, _constant(lambda: True)),
        (pickle.NEWFALSE, _constant(lambda: False)),
        (pickle.BININT, _binary("<i", 4)),
        (pickle.BININT1, _binary("<B", 1)),
        (pickle.BININT2, _binary("<H", 2)),
        (pickle.LONG1, _long("<B", 1)),
        (pickle.LONG4, _long("<i", 4)),
        (pickle.BINFLOAT, _binary(">d", 8)),
        (pickle.BINUNICODE, _text("<I", 4)),
        (pickle.SHORT_BINUNICODE, _text("<B", 1)),
        (pickle.BINUNICODE8, _text("<Q", 8)),
        (pickle.BINSTRING, _old_text("<i", 4)),
        (pickle.SHORT_BINSTRING, _old_text("<B", 1)),
        (pickle.BINBYTES, _raw("<I", 4)),
        (pickle.SHORT_BINBYTES, _raw("<B", 1)),
        (pickle.BINBYTES8, _raw("<Q", 8)),
        (pickle.BYTEARRAY8, _raw("<Q", 8, bytearray)),
        (pickle.EMPTY_TUPLE, _constant(tuple)),
        (pickle.EMPTY_LIST, _constant(list)),
        (pickle.EMPTY_DICT, _constant(dict)),
        (pickle.EMPTY_SET, _constant(set)),
        (pickle.TUPLE, lambda d: _push(d, tuple(d.until_mark()))),
        (pickle.TUPLE1, _short_tuple(1)),
        (pickle.TUPLE2, _short_tuple(2)),
        (pickle.TUPLE3, _short_tuple(3)),
        (pickle.LIST, lambda d: _push(d, d.until_mark())),
        (pickle.FROZENSET, _frozen),
        (pickle.APPEND, _one("append")),
        (pickle.APPENDS, _many("append")),
        (pickle.SETITEM, _set_item),
        (pickle.SETITEMS, _many("set_items")),
        (pickle.ADDITEMS, _many("add")),
        (pickle.BINPUT, lambda d: d.put(d.number("<B", 1))),
        (pickle.LONG_BINPUT, lambda d: d.put(d.number("<I", 4))),
        (pickle.MEMOIZE, lambda d: d.put(len(d.memo))),
        (pickle.BINGET, lambda d: _push(d, d.memo[d.number("<B", 1)])),
        (pickle.LONG_BINGET, lambda d: _push(d, d.memo[d.number("<I", 4)])),
        (pickle.GLOBAL, _global),
        (pickle.STACK_GLOBAL, _stack_global),
        (pickle.REDUCE, lambda d: d.push_call()),
        (pickle.NEWOBJ, lambda d: d.push_new()),
        (pickle.BUILD, lambda d: d.build()),
        (pickle.BINPERSID, lambda d: d.persistent()),
    )
}


def _push(d: Decoder, value: Any) -> None:
    # `until_mark` replaces the stack, so that it must be looked up after the value is made.
    d.stack.append(value)


class PickleReader:
    """A file whose structure is a pickle."""

    def _decoder(self) -> Decoder:
        raise NotImplementedError

    def load(self) -> Any:
        """The object in the file."""
        return self._decoder().load()

    def unknown_names(self) -> list[str]:
        """Names in the file that are not data."""
        decoder = self._decoder()
        decoder.unknown = []
        decoder.load()
        return decoder.unknown

    def is_data(self) -> bool:
        """Whether the file asks for nothing but data."""
        try:
            return not self.unknown_names()
        except Exception:  # of what pickle writes, the reader of data knows a part only
            return False
