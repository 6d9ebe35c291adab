"""Lists and dicts of parameters, as clew.nn.modules.container offers them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import clew

from ..parameter import Parameter
from ._container_base import _pairs, _position
from .module import Module


def _described(value: Any, by_type: bool) -> str:
    """What is told of a value: PyTorch's lists name a tensor's dtype, its dicts the type."""
    if isinstance(value, clew.Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        size = "x".join(str(n) for n in value.size())
        name = value.type() if by_type else value.dtype
        return f"{kind} containing: [{name} of size {size}]"
    return f"Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list whose tensors are parameters; other values are kept as they are.

    Args:
        values: the first values; a Tensor becomes a Parameter.

    Example:
        >>> ps = clew.nn.ParameterList([clew.ones(2), clew.ones(3)])
        >>> len(list(ps.parameters()))
        2
    """

    __module__ = "clew.nn.modules.container"

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            made = self.__class__()
            for i in range(*idx.indices(len(self))):
                made.append(self[i])
            return made
        return getattr(self, str(_position(idx, len(self))))

    def __setitem__(self, idx: Any, param: Any) -> None:
        if isinstance(param, clew.Tensor) and not isinstance(param, Parameter):
            param = Parameter(param)
        setattr(self, str(_position(idx, len(self))), param)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [k for k in super().__dir__() if not k.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end.

        Args:
            value: a Tensor becomes a Parameter.

        Returns:
            the list.
        """
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end.

        Args:
            values: the values in order.

        Returns:
            the list.
        """
        if not isinstance(values, Iterable) or isinstance(values, clew.Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_described(p, False)}" for i, p in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class _NoSuchKey(KeyError, AttributeError):
    """A key that a ParameterDict does not have; PyTorch raises AttributeError, a dict KeyError."""


class ParameterDict(Module):
    """A dict whose tensors are parameters; other values are kept as they are.

    Args:
        parameters: a mapping, or pairs of (name, value), or names.

    Example:
        >>> ps = clew.nn.ParameterDict({"a": clew.ones(2)})
        >>> "a" in ps
        True
    """

    __module__ = "clew.nn.modules.container"

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: a key must be a string; got {type(key).__name__}")
        return key

    def __getitem__(self, key: str) -> Any:
        name = self._attribute(key)
        if name not in self._keys:
            raise _NoSuchKey(key)
        return getattr(self, name)

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._attribute(key)
        self._keys[name] = None
        if isinstance(value, clew.Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, name, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A new ParameterDict with the same values."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, set to default if it was absent.

        Args:
            key: the name.
            default: the value to set.

        Returns:
            the value.
        """
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes a value out.

        Args:
            key: its name.

        Returns:
            the value.
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes the pair that was added last out."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key.

        Args:
            key: the name.
            default: the answer if it is absent.

        Returns:
            the value.
        """
        return self[key] if key in self._keys else default

    @classmethod
    def fromkeys(cls, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A ParameterDict of the same value under several names.

        Args:
            keys: the names.
            default: the value.

        Returns:
            the dict.
        """
        return cls((k, default) for k in keys)

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """The pairs of name and value."""
        return ((k, self[k]) for k in self._keys)

    def values(self) -> Iterator[Any]:
        """The values."""
        return (self[k] for k in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds or replaces values.

        Args:
            parameters: a mapping, or pairs of (name, value).
        """
        pairs = _pairs("ParameterDict update", parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs.sort(key=lambda p: p[0])
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({k}): {_described(p, True)}" for k, p in self.items())

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self
