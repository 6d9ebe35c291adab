"""What the names in a container's pickle stand for: constructors of plain data and of tensors.

Every constructor checks its arguments; none imports or calls what a file names.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew._base.dtypes import STORAGE_DTYPES
from clew.storage import TypedStorage, UntypedStorage

from .limits import fail, shown
from .tensors import DTYPE_NAMES, MAX_DIMS, may_require_grad, view_of


class Name:
    """A name from the file: what may be called is `build`, which takes the arguments."""

    def __init__(
        self, name: str, build: Callable[..., Any] | None, user: Any = None, keys: Any = None
    ) -> None:
        self.name = name
        self.build = build
        self.user = user  # a class that the user has allowed
        self.keys = keys  # of the arguments: what will be hashed

    def __repr__(self) -> str:
        return self.name


def storage_of(raw: Tensor, dtype: Any) -> TypedStorage:
    """What a persistent id stands for: the storage over its bytes. A program may get it as it is,
    wherever it lies in the object; an untyped one (dtype None) is one of bytes, as in PyTorch.
    """
    kind = clew.uint8 if dtype is None else dtype
    return TypedStorage(wrap_storage=UntypedStorage._over(raw), dtype=kind)


def raw_of(storage: TypedStorage) -> Tensor:
    """The bytes of a storage that `storage_of` made."""
    return storage._untyped_storage._bytes


def _rebuild_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    meta: Any = None,
) -> Tensor:
    if type(storage) is not TypedStorage:
        fail("a tensor has no storage")
    return _finish(storage, storage.dtype, offset, size, stride, requires_grad, meta)


def _rebuild_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    meta: Any = None,
) -> Tensor:
    if type(storage) is not TypedStorage or not isinstance(dtype, clew.dtype):
        fail("a tensor has no storage or no dtype")
    return _finish(storage, dtype, offset, size, stride, requires_grad, meta)


def _rebuild_v1(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    return _rebuild_v2(storage, offset, size, stride, False, None)


def _finish(
    storage: TypedStorage,
    dtype: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    meta: Any,
) -> Tensor:
    raw = raw_of(storage)
    out = view_of(raw, dtype, _plain(size), _plain(stride), offset, f"a {dtype} tensor")
    if isinstance(meta, dict):
        # These make copies, which of an expanded tensor would be larger than any file.
        if out.numel() > raw.numel() and (meta.get("conj") or meta.get("neg")):
            fail(f"a tensor of {out.numel()} elements is conjugated or negated")
        if meta.get("conj"):
            out = out.conj()
        if meta.get("neg"):
            out = out.neg()
    return _with_grad(out, requires_grad)


def _plain(size: Any) -> Any:
    return tuple(size) if isinstance(size, (clew.Size, list)) else size


def _with_grad(out: Tensor, requires_grad: Any) -> Tensor:
    if type(requires_grad) is not bool:
        fail(f"requires_grad is {shown(requires_grad)}")
    if requires_grad:
        if not may_require_grad(out.dtype):
            fail(f"a tensor of {out.dtype} requires a gradient")
        out.requires_grad_(True)
    return out


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Tensor:
    from clew.nn import Parameter

    if not isinstance(data, Tensor) or type(requires_grad) is not bool:
        fail("a parameter has no tensor")
    if requires_grad and not may_require_grad(data.dtype):
        fail(f"a parameter of {data.dtype} requires a gradient")
    made = Parameter(data, requires_grad)
    set_attributes(made, state)
    return made


def set_attributes(tensor: Tensor, state: Any) -> None:
    """Gives a tensor the attributes that the program had set on the one that was saved."""
    from clew.nn import Buffer, Parameter

    if state is None:
        return
    if not isinstance(state, dict) or not all(type(name) is str for name in state):
        fail(f"the attributes of a tensor are {shown(state)}")
    # Those of sparse tensors are their parts, too, which were checked.
    if type(tensor) not in (Tensor, Parameter, Buffer):
        state = {name: value for name, value in state.items() if not name.startswith("_")}
    tensor.__dict__.update(state)


# How files of whole objects name the kinds of tensors (see clew._tensor.pickling).
_OWN_PARAMETER, _OWN_BUFFER = "clew.nn.parameter.Parameter", "clew.nn.parameter.Buffer"
_OWN_TENSORS = ("clew.Tensor", "torch.Tensor")


def _rebuild_own(
    kind: Any, storage: Any, dtype: Any, offset: Any, size: Any, stride: Any, requires_grad: Any
) -> Tensor:
    if type(storage) is not TypedStorage or not isinstance(dtype, clew.dtype):
        fail("a tensor has no storage or no dtype")
    own = isinstance(kind, Name) and kind.name in _OWN_TENSORS
    # A class itself is there only where the user has allowed it.
    allowed = isinstance(kind, type) and issubclass(kind, Tensor)
    if not own and not allowed:
        raise UnpicklingError(f"load: tensors of type {shown(kind)} are not known")
    out = _finish(storage, dtype, offset, size, stride, requires_grad, None)
    return out if own else Tensor._make_subclass(kind, out.detach(), out.requires_grad)


def _rebuild_own_parameter(kind: Any, data: Any, requires_grad: Any, state: Any) -> Tensor:
    name = kind.name if isinstance(kind, Name) else ""
    if name == _OWN_PARAMETER:
        return _rebuild_parameter(data, requires_grad, None, state)
    if name != _OWN_BUFFER or not isinstance(data, Tensor) or not isinstance(state, dict):
        raise UnpicklingError(f"load: parameters of type {shown(kind)} are not known")
    return _buffer(data, requires_grad, state)


def _buffer(data: Tensor, requires_grad: Any, state: dict[str, Any]) -> Tensor:
    from clew.nn import Buffer

    made = Buffer(data.detach(), persistent=bool(state.get("persistent", True)))
    rest = {name: v for name, v in state.items() if name not in ("persistent", "_is_buffer")}
    set_attributes(made, rest)
    return _with_grad(made, requires_grad)


def _rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    if not isinstance(dtype, clew.dtype):
        fail("a meta tensor has no dtype")
    size, stride = _plain(size), _plain(stride)
    for values in (size, stride):
        if (
            not isinstance(values, tuple)
            or len(values) > MAX_DIMS
            or not all(type(v) is int and 0 <= v < 2**31 for v in values)
        ):
            fail(f"a meta tensor has size {shown(size)} and stride {shown(stride)}")
    if len(size) != len(stride):
        fail(f"a meta tensor has size {shown(size)} and stride {shown(stride)}")
    out = clew.empty_strided(size, stride, dtype=dtype, device="meta")
    return _with_grad(out, requires_grad)


def _rebuild_from_type(function: Any, kind: Any, args: Any, state: Any) -> Tensor:
    if not isinstance(function, Name) or function.build is None or not isinstance(args, tuple):
        fail("a tensor has no constructor")
    if not isinstance(kind, Name) or kind.name not in (
        "torch.Tensor",
        "torch.nn.parameter.Parameter",
        "torch.nn.parameter.Buffer",
    ):
        raise UnpicklingError(f"load: tensors of type {shown(kind)} are not known")
    out = function.build(*args)
    if not isinstance(out, Tensor):
        fail("a tensor has another type")
    if isinstance(state, dict) and state.get("_is_buffer") is True:  # PyTorch's buffers
        return _buffer(out, bool(out.requires_grad), state)
    set_attributes(out, state)
    return out


def _size(values: Any = ()) -> Any:
    if not isinstance(values, (tuple, list)) or not all(type(v) is int for v in values):
        fail(f"a Size is {shown(values)}")
    return clew.Size(values)


def _device(kind: Any, index: Any = None) -> Any:
    if not isinstance(kind, str) or not (index is None or type(index) is int):
        fail(f"a device is {shown(kind)}, {shown(index)}")
    try:
        return clew.device(kind) if index is None else clew.device(kind, index)
    except (RuntimeError, ValueError, TypeError):
        return clew.device("cpu")  # one that this library does not have


_LAYOUTS = tuple("strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged".split())


def _layout(name: Any) -> Any:
    if not isinstance(name, str) or name.removeprefix("torch.") not in _LAYOUTS:
        fail(f"the layout is {shown(name)}")
    return getattr(clew, name.removeprefix("torch."))


def _rebuild_distributed(*parts: Any) -> Tensor:
    """A process's part of a DTensor, on a mesh of the processes that saved it."""
    from clew.distributed.tensor._saving import rebuilt

    if len(parts) != 7:
        fail("the parts of a distributed tensor are incomplete")
    return rebuilt(*parts)


def _rebuild_sparse(layout: Any, data: Any) -> Tensor:
    """Of the parts that the public constructors take, which check them."""
    if not isinstance(data, tuple) or not 3 <= len(data) <= 4:
        fail(f"the parts of a sparse tensor are {shown(data)}")
    parts, rest = data[:2], data[2:]
    if not all(type(t) is Tensor for t in parts):
        fail("a part of a sparse tensor is no tensor")
    try:
        if layout is clew.sparse_coo:
            made = clew.sparse_coo_tensor(parts[0], parts[1], tuple(rest[0]))
            if rest[1:] == (True,):
                made = made.coalesce() if not made.requires_grad else made._known_coalesced()
            return made
        if layout in (clew.sparse_csr, clew.sparse_csc, clew.sparse_bsr, clew.sparse_bsc):
            make = clew.sparse_compressed_tensor
            return make(parts[0], parts[1], rest[0], tuple(rest[1]), layout=layout)
        if layout is clew.strided and rest == ("nested",):
            return clew.nested._strided.of_parts(*parts)
        if layout is clew.jagged and len(rest) == 2 and type(rest[1]) is int:
            make_ragged = clew.nested.nested_tensor_from_jagged
            return make_ragged(parts[0], parts[1], rest[0], jagged_dim=rest[1])
    except (RuntimeError, TypeError, ValueError, IndexError) as e:
        fail(f"the parts of a sparse tensor do not fit: {e}")
    fail(f"the layout of a sparse tensor is {shown(layout)}")


def _number(kind: Any) -> Callable[..., Any]:
    def build(*args: Any) -> Any:
        if len(args) > 2 or not all(type(a) in (int, float) for a in args):
            fail(f"a {kind.__name__} is {shown(args)}")
        return kind(*args)

    return build


def _bool(value: Any = False) -> bool:
    if type(value) is not bool:
        fail(f"a bool is {shown(value)}")
    return value


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8"):
        fail("bytes have no text")
    return text.encode(encoding)


def _bytes(*args: Any) -> bytes:
    if args:
        fail("bytes have arguments")
    return b""


def _bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    if isinstance(data, str) and encoding in ("latin-1", "latin1"):
        data = data.encode("latin1")
    if not isinstance(data, bytes):
        fail("a bytearray has no bytes")
    return bytearray(data)


def collection(kind: Any) -> Callable[..., Any]:
    def build(items: Any = ()) -> Any:
        if not isinstance(items, (list, tuple)):
            fail(f"a {kind.__name__} has no items")
        return kind(items)

    return build


def _ordered_dict(items: Any = ()) -> OrderedDict[Any, Any]:
    out: OrderedDict[Any, Any] = OrderedDict()
    if not isinstance(items, (list, tuple)):
        fail("an OrderedDict has no items")
    for pair in items:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            fail("an item of an OrderedDict is not a pair")
        out[pair[0]] = pair[1]
    return out


def _items(items: Any = ()) -> Any:
    return items if isinstance(items, (list, tuple)) else ()


def _firsts(items: Any = ()) -> Any:
    return [pair[0] for pair in _items(items) if isinstance(pair, (list, tuple)) and pair]


_KEYS = {"OrderedDict": _firsts, "set": _items, "frozenset": _items}


def _counter(items: Any = None) -> Counter[Any]:
    if items is not None and not isinstance(items, dict):
        fail("a Counter has no items")
    return Counter(items)


_FACTORIES = {
    f"{module}.{kind.__name__}": kind
    for module in ("__builtin__", "builtins")
    for kind in (dict, list, int, float, str, set)
}


def _defaultdict(factory: Any = None) -> defaultdict[Any, Any]:
    if factory is None:
        return defaultdict(None)
    if not isinstance(factory, Name) or factory.name not in _FACTORIES:
        fail(f"the factory of a defaultdict is {shown(factory)}")
    return defaultdict(_FACTORIES[factory.name])


def _slice(*args: Any) -> slice:
    if not 1 <= len(args) <= 3 or not all(a is None or type(a) is int for a in args):
        fail(f"a slice is {shown(args)}")
    return slice(*args)


def _np_dtype(text: Any, align: Any = False, copy: Any = True) -> Any:
    if not isinstance(text, str) or not text[:1] or text[0] not in "biufcSU":
        fail(f"a NumPy dtype is {shown(text)}")
    if not text[1:].isdigit() or int(text[1:]) > 2**20:
        fail(f"a NumPy dtype is {shown(text)}")
    try:
        return np.dtype(text, copy=True)
    except TypeError:
        return fail(f"a NumPy dtype is {shown(text)}")


def _np_check(dtype: Any, data: Any, count: int) -> None:
    if not isinstance(dtype, np.dtype) or not isinstance(data, bytes):
        fail("a NumPy value has no dtype or no bytes")
    if dtype.itemsize == 0 and count > 1:
        fail(f"a NumPy value has {count} elements of no bytes")
    if len(data) != count * dtype.itemsize:
        fail(f"a NumPy value needs {count * dtype.itemsize} bytes; there are {len(data)}")


def _np_scalar(dtype: Any, data: Any) -> Any:
    _np_check(dtype, data, 1)
    return np.frombuffer(data, dtype, 1)[0]


def _np_reconstruct(kind: Any, shape: Any, code: Any) -> Any:
    if not isinstance(kind, Name) or kind.name != "numpy.ndarray":
        fail("a NumPy array has another type")
    return np.empty(0, np.uint8)


def _np_frombuffer(data: Any, dtype: Any, shape: Any, order: Any) -> Any:
    count = _np_count(shape)
    data = bytes(data) if isinstance(data, bytearray) else data
    _np_check(dtype, data, count)
    if order not in ("C", "F"):
        fail(f"a NumPy array has order {shown(order)}")
    return np.frombuffer(data, dtype, count).reshape(shape, order=order).copy(order)


def _np_count(shape: Any) -> int:
    if not isinstance(shape, tuple) or len(shape) > 32:
        fail(f"a NumPy array has shape {shown(shape)}")
    count = 1
    for n in shape:
        if type(n) is not int or not 0 <= n < 2**40:
            fail(f"a NumPy array has shape {shown(shape)}")
        count *= n
    if count > 2**40:
        fail(f"a NumPy array has shape {shown(shape)}")
    return count


def np_set_state(value: Any, state: Any) -> None:
    """`__setstate__` of arrays and dtypes, after checking what it would believe."""
    if not isinstance(state, tuple):
        fail("the state of a NumPy object is not a tuple")
    if isinstance(value, np.dtype):
        plain = (-1, -1) if value.kind in "biufc" else (value.itemsize, value.alignment)
        if (
            len(state) not in (8, 9)
            or state[0] not in (3, 4)
            or state[1] not in ("<", ">", "|", "=")
            or state[2:5] != (None, None, None)
            or state[5:7] != plain
            or state[8:] not in ((), (None,))
        ):
            fail("the state of a NumPy dtype is not one of plain numbers")
        value.__setstate__(state[:8])  # type: ignore[attr-defined]
        return
    if len(state) != 5:
        fail("the state of a NumPy array is incomplete")
    version, shape, dtype, fortran, data = state
    if version != 1 or type(fortran) is not bool:
        fail("the state of a NumPy array is not known")
    count = _np_count(shape)
    _np_check(dtype, data, count)
    value.__setstate__((1, shape, dtype, fortran, data))


def _make_names() -> dict[str, Name]:
    names: dict[str, Callable[..., Any] | None] = {
        "collections.OrderedDict": _ordered_dict,
        "collections.Counter": _counter,
        "collections.defaultdict": _defaultdict,
        "_codecs.encode": _encode,
        "torch._utils._rebuild_tensor": _rebuild_v1,
        "torch._utils._rebuild_tensor_v2": _rebuild_v2,
        "torch._utils._rebuild_tensor_v3": _rebuild_v3,
        "torch._utils._rebuild_parameter": _rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
        "torch._utils._rebuild_meta_tensor_no_storage": _rebuild_meta,
        "torch._utils._rebuild_sparse_tensor": _rebuild_sparse,
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type,
        "clew._tensor.pickling._rebuild": _rebuild_own,
        "clew.distributed.tensor._saving.rebuilt": _rebuild_distributed,
        "clew.nn.parameter._rebuild_parameter": _rebuild_own_parameter,
        _OWN_PARAMETER: None,
        _OWN_BUFFER: None,
        "clew.Tensor": None,
        "clew.Size": _size,
        "torch.Size": _size,
        "torch.device": _device,
        "torch.serialization._get_layout": _layout,
        "torch.Tensor": None,
        "torch.nn.parameter.Parameter": None,
        "torch.nn.parameter.Buffer": None,
        "torch.storage.UntypedStorage": None,
        "numpy.dtype": _np_dtype,
        "numpy.ndarray": None,
    }
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        names[f"{module}.scalar"] = _np_scalar
        names[f"{module}._reconstruct"] = _np_reconstruct
    for module in ("numpy.core.numeric", "numpy._core.numeric"):
        names[f"{module}._frombuffer"] = _np_frombuffer
    for module in ("__builtin__", "builtins"):
        names |= {
            f"{module}.complex": _number(complex),
            f"{module}.int": _number(int),
            f"{module}.long": _number(int),
            f"{module}.float": _number(float),
            f"{module}.bool": _bool,
            f"{module}.bytes": _bytes,
            f"{module}.bytearray": _bytearray,
            f"{module}.set": collection(set),
            f"{module}.frozenset": collection(frozenset),
            f"{module}.slice": _slice,
            f"{module}.list": None,
            f"{module}.dict": None,
            f"{module}.str": None,
        }
    for name in STORAGE_DTYPES:
        names[f"torch.{name}"] = None
        names[f"torch.{name.replace('Storage', 'Tensor')}"] = None  # before the container
    return {
        name: Name(name, build, keys=_KEYS.get(name.rpartition(".")[2]))
        for name, build in names.items()
    }


NAMES = _make_names()
DTYPES = {
    f"{home}.{name}": dtype for name, dtype in DTYPE_NAMES.items() for home in ("torch", "clew")
}
