"""Data pipes that are asked for samples by key."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from clew._torch.utils.data.datapipes._decorator import functional_datapipe
from clew._torch.utils.data.datapipes.datapipe import (
    DataChunk,
    IterDataPipe,
    MapDataPipe,
    Shuffling,
)

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapper(MapDataPipe):
    """The items of a sequence, or of a mapping.

    Args:
        sequence: the items.
        deepcopy: whether a copy is held.
    """

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """What a function makes of each item."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any]) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(MapDataPipe):
    """Items in lists of equal length; arguments as for the iterated kind."""

    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[Any], Any] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(first, last)])

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class _Several(MapDataPipe):
    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(p, MapDataPipe) for p in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class Concater(_Several):
    """The items of several pipes, one after the other."""

    def __getitem__(self, index: int) -> Any:
        rest = index
        for pipe in self.datapipes:
            if rest < len(pipe):
                return pipe[rest]
            rest -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class Zipper(_Several):
    """One item of each of several pipes, as tuples."""

    def __getitem__(self, index: int) -> Any:
        if index >= len(self):
            raise IndexError(f"Index {index} is out of range.")
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


class Shuffler(Shuffling, IterDataPipe):
    """The items in a random order, iterated.

    Args:
        datapipe: the items.
        indices: their keys; 0, 1, ... if None.
    """

    def __init__(self, datapipe: Any, *, indices: Any = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices

    def reset(self) -> None:
        """Begins a pass; see `Shuffling`."""
        super().reset()
        self._order = list(self.indices)
        if self._enabled:
            # From the end on, as PyTorch takes them.
            self._order = self._rng.sample(self.indices, len(self.indices))[::-1]

    def __iter__(self) -> Iterator[Any]:
        for index in self._order:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
