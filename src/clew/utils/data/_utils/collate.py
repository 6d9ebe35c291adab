"""From a list of samples to one batch of tensors."""

from __future__ import annotations

import collections.abc as abc
import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import clew
from clew import Tensor

__all__ = ["collate", "default_collate", "default_convert"]

_Map = dict[Any, Callable[..., Any]]


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _rebuild(like: Any, items: Any) -> Any:
    """A container of the type of `like`; a plain dict or list where that type cannot be made."""
    kind = type(like)
    try:
        if isinstance(like, abc.MutableMapping):
            # A copy keeps what else the container carries, such as a default factory.
            clone = copy.copy(like)
            clone.update(items)
            return clone
        if isinstance(like, abc.MutableSequence):
            sequence: Any = copy.copy(like)
            for i, item in enumerate(items):
                sequence[i] = item
            return sequence
        return kind(items)
    except TypeError:
        return items


def default_convert(data: Any) -> Any:
    """Turns NumPy arrays and numbers inside `data` into tensors, keeping containers.

    Args:
        data: arrays, mappings, sequences; anything else is returned as it is.

    Returns:
        the same structure, with tensors.

    Example:
        >>> from clew.utils.data import default_convert
        >>> import numpy
        >>> default_convert([numpy.array([1, 2]), "a"])
        [tensor([1, 2]), 'a']
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        if isinstance(data, np.ndarray) and data.dtype.kind in "SUOV":
            return data
        if isinstance(data, np.generic) and data.dtype.kind in "SUOV":
            return data
        return clew.as_tensor(data)
    if isinstance(data, abc.Mapping):
        return _rebuild(data, {key: default_convert(value) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, abc.Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild(data, [default_convert(value) for value in data])
    return data


def _wrong_type(kind: Any) -> TypeError:
    return TypeError(
        "default_collate: a batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"got {kind}"
    )


def collate(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """Joins samples of equal structure; leaves are joined by the functions of a map.

    Args:
        batch: a list of samples.
        collate_fn_map: from a type, or a tuple of types, to `f(batch, *, collate_fn_map)`.

    Returns:
        One object of the structure of a sample.

    Example:
        >>> from clew.utils.data._utils.collate import collate
        >>> collate([1, 2], collate_fn_map={int: lambda b, *, collate_fn_map: sum(b)})
        3
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for types, function in collate_fn_map.items():
            if isinstance(first, types):
                return function(batch, collate_fn_map=collate_fn_map)

    def join(items: Any) -> Any:
        return collate(items, collate_fn_map=collate_fn_map)

    if isinstance(first, abc.Mapping):
        return _rebuild(first, {key: join([sample[key] for sample in batch]) for key in first})
    if _is_namedtuple(first):
        return kind(*(join(items) for items in zip(*batch)))
    if isinstance(first, abc.Sequence) and not isinstance(first, (str, bytes)):
        size = len(first)
        if any(len(sample) != size for sample in batch):
            raise RuntimeError(
                "default_collate: each element in list of batch should be of equal size; "
                f"got sizes {sorted({len(sample) for sample in batch})}"
            )
        joined = [join(items) for items in zip(*batch)]
        return joined if isinstance(first, tuple) else _rebuild(first, joined)
    raise _wrong_type(kind)


def _stacked(batch: Any) -> Any:
    """The samples as one tensor."""
    try:
        return clew.stack(list(batch), 0)
    except RuntimeError:
        shapes = [list(sample.shape) for sample in batch]
        other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if other is None:
            raise
        raise RuntimeError(
            "default_collate: stack needs samples of equal sizes; got "
            f"{shapes[0]} at entry 0 and {shapes[other]} at entry {other}. Give DataLoader a "
            "collate_fn: clew.nested.collate makes a ragged batch, nn.utils.rnn.pad_sequence pads"
        ) from None


def collate_tensor_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    return _stacked(batch)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    if batch[0].dtype.kind in "SUOV":
        raise _wrong_type(batch[0].dtype)
    return _stacked([clew.as_tensor(array) for array in batch])


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    if batch[0].dtype.kind in "SU":
        return batch
    return clew.as_tensor(np.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    return clew.tensor(list(batch), dtype=clew.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    return clew.tensor(list(batch))


def collate_str_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    return batch


default_collate_fn_map: _Map = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_, np.generic): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Joins samples of equal structure into a batch: tensors are stacked, numbers become tensors.

    Args:
        batch: a list of samples: tensors, arrays, numbers, strings, or mappings, named tuples and
            sequences of such.

    Returns:
        One object of the structure of a sample, with a new first dimension (strings: lists).

    Example:
        >>> from clew.utils.data import default_collate
        >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
        {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of arrays that no tensor can hold
