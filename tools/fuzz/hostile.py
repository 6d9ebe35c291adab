"""Objects that lie: sequences without a fixed length, numbers that raise, subclasses, hooks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import clew


class LyingSequence:
    """Says one length and gives another number of elements."""

    def __init__(self, said: int, given: list[Any]) -> None:
        self.said, self.given = said, given

    def __len__(self) -> int:
        return self.said

    def __getitem__(self, index: int) -> Any:
        return self.given[index]


class ShrinkingList(list):  # type: ignore[type-arg]
    """Loses its elements while it is read."""

    def __iter__(self) -> Iterator[Any]:
        while self:
            yield self.pop()

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        self.clear()
        return value


class Emptying:
    """An int that empties the list it stands in when it is asked for its value."""

    def __init__(self, holder: list[Any]) -> None:
        self.holder = holder

    def __index__(self) -> int:
        self.holder.clear()
        return 2

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())


class Raising:
    """Raises whatever it is asked."""

    def __index__(self) -> int:
        raise ValueError("asked for an index")

    def __float__(self) -> float:
        raise ValueError("asked for a float")

    def __len__(self) -> int:
        raise ValueError("asked for a length")

    def __bool__(self) -> bool:
        raise ValueError("asked for a truth value")

    def __iter__(self) -> Iterator[Any]:
        raise ValueError("asked for elements")


class Subclass(clew.Tensor):
    """A subclass that does nothing special."""


class Meddler(clew.Tensor):
    """Every function on it changes it first."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if random.random() < 0.3:
            return random.choice([None, 3, "x", NotImplemented, clew.ones(2)])
        return super().__torch_function__(func, types, args, kwargs or {})


def value(r: random.Random, tensor: Callable[[], Any]) -> Any:
    """Something that no function asks for."""
    holder: list[Any] = [1, 2, 3]
    holder[1] = Emptying(holder)
    return r.choice(
        [
            lambda: None,
            lambda: "x",
            lambda: "\ud800",
            lambda: b"float32",
            list,
            dict,
            lambda: object,
            lambda: object(),
            lambda: 1.5,
            lambda: float("nan"),
            lambda: True,
            lambda: [None],
            lambda: 2**70,
            lambda: -(2**63),
            lambda: LyingSequence(5, [1, 2]),
            lambda: LyingSequence(2**40, [1, 2]),
            lambda: LyingSequence(1, [tensor(), tensor()]),
            lambda: ShrinkingList([1, 2, 3]),
            lambda: ShrinkingList([tensor(), tensor()]),
            lambda: holder,
            Raising,
            lambda: [Raising(), 1],
            lambda: range(3),
            lambda: iter([1, 2]),
            lambda: [[1, [2, [3]]]],
            lambda: slice(None, None, -1),
            lambda: ...,
            lambda: clew.float32,
            lambda: tensor().as_subclass(Subclass),
            lambda: tensor().as_subclass(Meddler),
            lambda: clew.Tensor.__new__(clew.Tensor),
            lambda: clew.Tensor,
            lambda: (tensor(), 3),
            lambda: [tensor(), None, "x"],
        ]
    )()


def hook(r: random.Random) -> Callable[[Any], Any]:
    """A hook on gradients that raises, or gives what it should not."""

    def spoil(grad: Any) -> Any:
        choice = r.random()
        if choice < 0.2:
            raise ValueError("a hook raised")
        if choice < 0.4:
            return clew.ones(3)
        if choice < 0.5:
            return "not a tensor"
        if choice < 0.6:
            return grad.to("meta")
        if choice < 0.8:
            grad.detach().mul_(2)
        return None

    return spoil


def unpack(r: random.Random) -> Callable[[Any], Any]:
    """Gives back something else than what was packed."""

    def spoil(packed: Any) -> Any:
        choice = r.random()
        if choice < 0.4:
            return packed
        if choice < 0.5:
            return clew.empty(packed.shape, dtype=packed.dtype, device="meta")
        if choice < 0.6:
            return packed.new_empty(0)
        if choice < 0.7:
            return packed.double() if packed.is_floating_point() else packed + 2**40
        if choice < 0.8:
            return clew.ones(3)
        if choice < 0.9:
            raise ValueError("unpacking raised")
        return None

    return spoil
