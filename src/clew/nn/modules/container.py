"""Containers: Sequential, lists and dicts of modules and of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import clew
from clew import _C

from ..parameter import Parameter
from .module import Module, _addindent

__all__ = [
    "Container",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


class Container(Module):
    """The oldest container: children given by name.

    Args:
        kwargs: name=module; each becomes a child, as an attribute.

    Example:
        >>> box = clew.nn.Container(act=clew.nn.ReLU())
        >>> box.act
        ReLU()
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


# What a module is called in messages is remembered between calls.
def _renumber(container: Module, modules: list[Any]) -> None:
    for module in modules:
        _C._forget_call(module)
    container.__dict__["_modules"] = {str(i): m for i, m in enumerate(modules)}


def _take_out(container: Module, key: str) -> Any:
    module = container._modules.pop(key)
    _C._forget_call(module)
    return module


def _position(idx: Any, length: int) -> int:
    idx = operator.index(idx)
    if not -length <= idx < length:
        raise IndexError(f"index {idx} is out of range")
    return idx % length


class Sequential(Module):
    """Runs its children one after the other.

    The output of each is the input of the next; the last one's output is returned.

    Args:
        args: modules in order, or one OrderedDict of name: module.

    Shapes:
        input: what the first child takes.
        returns: what the last child gives; without children the input.

    Example:
        >>> net = clew.nn.Sequential(clew.nn.Linear(4, 3), clew.nn.ReLU())
        >>> tuple(net(clew.ones(2, 4)).shape)
        (2, 3)
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[idx]))
        return next(islice(self._modules.values(), _position(idx, len(self)), None))

    def _key(self, idx: Any) -> str:
        return list(self._modules)[_position(idx, len(self))]

    def __setitem__(self, idx: Any, module: Any) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: Any) -> None:
        if isinstance(idx, slice):
            for key in list(self._modules)[idx]:
                delattr(self, key)
        else:
            delattr(self, self._key(idx))
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Any]) -> None:
        _renumber(self, modules)

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is "
                "given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is "
                "given."
            )
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*(list(self) * _times(other)))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Sequential:
        return self.extend(list(self) * (_times(other) - 1))

    def append(self, module: Any) -> Sequential:
        """Adds a module at the end.

        Args:
            module: the module.

        Returns:
            the container.
        """
        self.add_module(str(len(self)), module)
        return self

    def extend(self, sequential: Iterable[Any]) -> Sequential:
        """Adds modules at the end.

        Args:
            sequential: the modules in order.

        Returns:
            the container.
        """
        for module in sequential:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> Sequential:
        """Puts a module before a position.

        Args:
            index: the position.
            module: the module.

        Returns:
            the container.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any) -> Any:
        """Takes a module out.

        Args:
            key: its position.

        Returns:
            the module.
        """
        taken = self[key]
        del self[key]
        return taken


def _times(n: Any) -> int:
    if not isinstance(n, int):
        raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(n)}")
    if n <= 0:
        raise ValueError(f"Non-positive multiplication factor {n} for {Sequential}")
    return n


class ModuleList(Module):
    """A list whose modules are registered.

    Args:
        modules: the first modules, in order.

    Example:
        >>> layers = clew.nn.ModuleList([clew.nn.Linear(2, 2) for _ in range(3)])
        >>> len(layers)
        3
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _key(self, idx: Any) -> str:
        return str(_position(idx, len(self)))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(list(self._modules.values())[idx])
        return self._modules[self._key(idx)]

    def __setitem__(self, idx: Any, module: Any) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: Any) -> None:
        modules = list(self._modules.values())
        del modules[idx]
        self._renumber(modules)

    def _renumber(self, modules: list[Any]) -> None:
        _renumber(self, modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Any]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *other])

    def __dir__(self) -> list[str]:
        return [k for k in super().__dir__() if not k.isdigit()]

    def insert(self, index: int, module: Any) -> None:
        """Puts a module before a position.

        Args:
            index: the position.
            module: the module.
        """
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def append(self, module: Any) -> ModuleList:
        """Adds a module at the end.

        Args:
            module: the module.

        Returns:
            the list.
        """
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Takes a module out.

        Args:
            key: its position.

        Returns:
            the module.
        """
        taken = self[key]
        del self[key]
        return taken

    def extend(self, modules: Iterable[Any]) -> ModuleList:
        """Adds modules at the end.

        Args:
            modules: the modules in order.

        Returns:
            the list.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        texts = [repr(m) for m in self]
        if not texts:
            return self._get_name() + "()"
        lines = []
        start = 0
        for i in range(1, len(texts) + 1):
            if i == len(texts) or texts[i] != texts[start]:
                n = i - start
                at = f"({start})" if n == 1 else f"({start}-{i - 1})"
                body = texts[start] if n == 1 else f"{n} x {texts[start]}"
                lines.append(f"{at}: {_addindent(body, 2)}")
                start = i
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict whose modules are registered; keeps the order of insertion.

    Args:
        modules: a mapping, or pairs of (name, module), in order.

    Example:
        >>> acts = clew.nn.ModuleDict({"relu": clew.nn.ReLU()})
        >>> acts["tanh"] = clew.nn.Tanh()
        >>> list(acts), acts["relu"](clew.tensor([-1., 2.])).tolist()
        (['relu', 'tanh'], [0.0, 2.0])
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        _take_out(self, key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        for key in list(self._modules):
            _take_out(self, key)

    def pop(self, key: str) -> Any:
        """Takes a module out.

        Args:
            key: its name.

        Returns:
            the module.
        """
        return _take_out(self, key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """The pairs of name and module."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds or replaces modules.

        Args:
            modules: a mapping, or pairs of (name, module).
        """
        for key, module in _pairs("ModuleDict update", modules):
            self[key] = module


def _pairs(where: str, items: Any) -> list[tuple[Any, Any]]:
    if hasattr(items, "items"):
        return list(items.items())
    if not isinstance(items, Iterable):
        raise TypeError(
            f"{where.replace(' ', '.')} should be called with an iterable of key/value pairs, "
            "but got " + type(items).__name__
        )
    found = []
    for j, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{where} sequence element #{j} should be Iterable; is {type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{where} sequence element #{j} has length {len(pair)}; 2 is required")
        found.append(pair)
    return found


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
