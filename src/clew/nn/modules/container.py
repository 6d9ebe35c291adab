"""Containers: Sequential, lists and dicts of modules and of parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from clew import _C

from ._container_base import _pairs, _position
from ._parameter_containers import ParameterDict, ParameterList
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
