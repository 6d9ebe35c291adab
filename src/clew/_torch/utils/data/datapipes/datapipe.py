"""The bases of data pipes, and the walk through a chain of them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import clew
from clew.utils.data import Dataset, IterableDataset
from clew.utils.data.sampler import _draw_seed


class _Pipe:
    """What both kinds of pipes have: methods that are classes, by name."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        found = type(self).functions.get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(found, self)

    def __getstate__(self) -> Any:
        return self.__dict__

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Makes a function a method of the pipes of this kind.

        Args:
            function_name: the method's name.
            function: takes the pipe first.
        """
        if function_name in cls.functions:
            raise Exception(  # of this class in PyTorch
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Makes a class of pipes such a method."""
        cls.register_function(function_name, cls_to_register)

    def __repr__(self) -> str:
        return type(self).__qualname__

    # ---- what a DataLoader asks of a dataset that is a pipe ----

    def _pipe_settle(self, shuffle: bool | None) -> Any:
        """The pipe with shuffling switched on or off along the chain."""
        if shuffle is None:
            return self
        shufflers = [p for p in pipes_of(self) if hasattr(p, "set_shuffle")]
        made: Any = self
        if shuffle and not shufflers:
            import warnings

            from clew._base.provenance import user_level

            warnings.warn(
                "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding "
                "one at the end. Be aware that the default buffer size might not be sufficient "
                "for your task.",
                stacklevel=user_level(),
            )
            made = made.shuffle()
            shufflers = [made]
        for pipe in shufflers:
            pipe.set_shuffle(shuffle)
        return made

    def _pipe_seed(self, generator: Any) -> int:
        """Seeds the pipes that draw, from one number of a generator, and gives the number."""
        own = clew.Generator()
        seed = _draw_seed(generator)
        own.manual_seed(seed)
        for pipe in pipes_of(self):
            if hasattr(pipe, "set_seed"):
                pipe.set_seed(_draw_seed(own))
        return seed

    def _pipe_share(self, shares: int, number: int) -> None:
        """Leaves one of several shares to this process."""
        found = [p for p in pipes_of(self) if hasattr(p, "apply_sharding")]
        for pipe in found:
            pipe.apply_sharding(shares, number)


class IterDataPipe(_Pipe, IterableDataset[Any]):
    """A data pipe that is iterated. Subclasses write `__iter__`; where they have a `reset`, it is
    called before.
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__iter__")
        if own is not None and hasattr(cls, "reset"):
            cls.__iter__ = _resetting(own)  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[Any]:
        return self


class MapDataPipe(_Pipe, Dataset[Any]):
    """A data pipe that is asked for samples by key, and has a length."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class _DataPipeSerializationWrapper:
    """A pipe around another, which loaders send to their workers."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __len__(self) -> int:
        return len(self._datapipe)


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):
    def __iter__(self) -> Iterator[Any]:
        return iter(self._datapipe)


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):
    def __getitem__(self, index: Any) -> Any:
        return self._datapipe[index]


class DataChunk(list[Any]):
    """The samples of a batch."""

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self.items = self

    def raw_iterator(self) -> Iterator[Any]:
        """The samples."""
        return iter(self)


class Shuffling:
    """What pipes that shuffle have: a switch, a seed for the next pass, their own generator."""

    _enabled = True
    _seed: int | None = None

    @functools.cached_property
    def _rng(self) -> random.Random:
        return random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Any:
        """Switches shuffling on or off; returns the pipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Any:
        """Seeds the next pass; returns the pipe."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Begins a pass: by the seed that was set, or one of the default generator's."""
        if self._enabled:
            self._rng.seed(_draw_seed(None) if self._seed is None else self._seed)
            self._seed = None


def _resetting(iterate: Any) -> Any:
    @functools.wraps(iterate)
    def __iter__(self: Any) -> Any:
        self.reset()
        return iterate(self)

    return __iter__


def pipes_of(pipe: Any) -> list[Any]:
    """A pipe and those that it reads from, each once, from the last of the chain on."""
    found: list[Any] = []

    def visit(value: Any) -> None:
        if isinstance(value, _Pipe):
            if any(value is p for p in found):
                return
            found.append(value)
            for part in vars(value).values():
                visit(part)
        elif isinstance(value, tuple | list | set):
            for part in value:
                visit(part)
        elif isinstance(value, dict):
            for part in value.values():
                visit(part)

    visit(pipe)
    return found
