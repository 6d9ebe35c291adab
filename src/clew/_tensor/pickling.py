"""Pickling and deep copies of tensors.

A pickle holds each storage once, however many tensors view it, and each tensor as a view of it.
"""

from __future__ import annotations

import weakref
from typing import Any

from clew import _C
from clew._base.settling import settle
from clew._C import Tensor, dtype

_alive: weakref.WeakValueDictionary[tuple[int, int], _Storage] = weakref.WeakValueDictionary()


class _Storage:
    """The bytes behind tensors, one object a storage, so that pickle's memo shares it."""

    def __init__(self, data: Tensor) -> None:
        self.data = data  # uint8, the whole storage

    def __reduce__(self) -> Any:
        return _storage_from_bytes, (self.data._array_view().tobytes(),)


def _storage_from_bytes(raw: bytes) -> _Storage:
    data = _C.empty(len(raw), dtype=_C.uint8)
    if raw:
        data._array_view()[:] = memoryview(raw)
    return _Storage(data)


def _storage_of(tensor: Tensor) -> _Storage:
    """The one living _Storage of this tensor's storage."""
    settle(tensor)
    data = tensor.detach()._storage_bytes()
    key = (tensor._storage_key(), data.numel())
    known = _alive.get(key)
    # Moved to shared memory it has another key, and its old one may have become another's.
    if known is None or known.data._storage_key() != key[0]:
        known = _alive[key] = _Storage(data)
    return known


class _Leaf:
    """Stands in a pickle for `requires_grad` of a leaf with a gradient.

    To another process the gradient is sent as well; other pickles are without.
    """

    def __init__(self, grad: Tensor) -> None:
        self.grad = grad

    def __reduce__(self) -> Any:
        return bool, (True,)


class _NonLeaf:
    """The same of a tensor with history, which is not sent to other processes at all."""

    def __reduce__(self) -> Any:
        return bool, (True,)


def requires_grad_of(tensor: Tensor) -> Any:
    """`requires_grad` as pickles hold it."""
    if not tensor.requires_grad:
        return False
    if not tensor.is_leaf:
        return _NonLeaf()
    return True if tensor.grad is None else _Leaf(tensor.grad.detach())


def _rebuild(
    cls: type[Tensor],
    storage: _Storage,
    kind: dtype,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool | _Leaf,
) -> Tensor:
    """A tensor that views a storage."""
    width = kind.itemsize
    usable = storage.data.numel() // width * width
    flat = storage.data[:usable]._reinterpret(kind)
    out = _C.empty(0, dtype=kind)
    out._set_to(flat, offset, tuple(size), tuple(stride))
    return _finish(cls, out, requires_grad)


def _rebuild_meta(
    cls: type[Tensor],
    kind: dtype,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool | _Leaf,
) -> Tensor:
    out = _C.empty_strided(tuple(size), tuple(stride), dtype=kind, device="meta")
    return _finish(cls, out, requires_grad)


def _finish(cls: type[Tensor], plain: Tensor, requires_grad: bool | _Leaf) -> Tensor:
    if cls is Tensor:
        out = plain.requires_grad_() if requires_grad else plain
    else:
        out = Tensor._make_subclass(cls, plain, bool(requires_grad))
    if isinstance(requires_grad, _Leaf):
        out.grad = requires_grad.grad
    return out


def _state_of(tensor: Tensor) -> dict[str, Any] | None:
    return dict(tensor.__dict__) or None


def reduce_tensor(tensor: Tensor, protocol: int) -> Any:
    """What pickle stores of a tensor; history is not kept, and hooks are left out."""
    if tensor.requires_grad:
        from clew.utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(tensor)
    plain = tensor.detach()
    cls = type(tensor)
    grad = requires_grad_of(tensor)
    if plain.device.type == "meta":
        args: tuple[Any, ...] = (cls, plain.dtype, tuple(plain.shape), plain.stride(), grad)
        made: tuple[Any, ...] = (_rebuild_meta, args)
    else:
        args = (
            cls,
            _storage_of(plain),
            plain.dtype,
            plain.storage_offset(),
            tuple(plain.shape),
            plain.stride(),
            grad,
        )
        made = (_rebuild, args)
    state = _state_of(tensor)
    if state is None:
        return made
    if cls.__reduce_ex__ is not Tensor.__reduce_ex__:
        return _rebuild_with_state, (*made, state)  # such classes take PyTorch's pair apart
    return (*made, state)


def _rebuild_with_state(make: Any, args: tuple[Any, ...], state: dict[str, Any]) -> Tensor:
    made: Tensor = make(*args)
    made.__dict__.update(state)
    return made


def copied_storage(tensor: Tensor, memo: dict[int, Any]) -> _Storage:
    """The copy of a tensor's storage in this deep copy, made when it is first asked for."""
    storages = memo.setdefault(id(_Storage), {})
    source = _storage_of(tensor)
    target = storages.get(id(source))
    if target is None:
        target = _Storage(source.data.clone())
        settle(target.data)  # else each tensor that views it would get memory of its own
        # The source is kept as well: while it lives its id is its own.
        storages[id(source)] = target
        storages[id(target)] = source
    return target


def deepcopy_tensor(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy for copy.deepcopy; shared storages stay shared, the gradient is copied too."""
    import copy

    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError(
            "deepcopy: Only Tensors created explicitly by the user (graph leaves) support the "
            "deepcopy protocol at the moment; use tensor.detach().clone()"
        )
    plain = tensor.detach()
    if plain.device.type == "meta":
        out = _rebuild_meta(
            type(tensor), plain.dtype, tuple(plain.shape), plain.stride(), tensor.requires_grad
        )
    else:
        out = _rebuild(
            type(tensor),
            copied_storage(plain, memo),
            plain.dtype,
            plain.storage_offset(),
            tuple(plain.shape),
            plain.stride(),
            tensor.requires_grad,
        )
    memo[id(tensor)] = out
    if tensor.grad is not None:
        out.grad = copy.deepcopy(tensor.grad, memo)
    if tensor.__dict__:
        out.__dict__.update(copy.deepcopy(tensor.__dict__, memo))
    return out
