"""Samplers: in which order a dataset is visited."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import clew

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


def _draw_seed(generator: Any = None) -> int:
    """A random 63-bit number."""
    return int(clew.empty((), dtype=clew.int64).random_(generator=generator).item())


class Sampler(Generic[T_co]):
    """Base class of samplers: an iterable of keys, or of lists of keys.

    Args:
        data_source: not used.

    Example:
        >>> from clew.utils.data import Sampler
        >>> class Backwards(Sampler):
        ...     def __init__(self, data):
        ...         self.data = data
        ...     def __iter__(self):
        ...         return iter(range(len(self.data) - 1, -1, -1))
        >>> list(Backwards("abc"))
        [2, 1, 0]
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        super().__init__()

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__ is not defined")


class SequentialSampler(Sampler[int]):
    """All samples in their order.

    Args:
        data_source: something with a length.

    Example:
        >>> from clew.utils.data import SequentialSampler
        >>> list(SequentialSampler("abc"))
        [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Samples in random order, or drawn with replacement.

    Args:
        data_source: something with a length.
        replacement: samples may come several times.
        num_samples: how many are drawn; None for all.
        generator: source of randomness; None for one seeded from the default generator.

    Example:
        >>> from clew.utils.data import RandomSampler
        >>> sorted(RandomSampler("abc"))
        [0, 1, 2]
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement must be a bool; got {replacement!r}")
        count = self.num_samples
        if not isinstance(count, int) or count <= 0:
            raise ValueError(f"RandomSampler: num_samples must be a positive integer; got {count}")

    @property
    def num_samples(self) -> int:
        """How many samples are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = clew.Generator()
            generator.manual_seed(_draw_seed())
        # The draws are made in pieces of these sizes so that equal seeds give PyTorch's order.
        if self.replacement:
            whole, rest = divmod(self.num_samples, 32)
            for size in itertools.chain(itertools.repeat(32, whole), [rest]):
                drawn = clew.randint(high=n, size=(size,), dtype=clew.int64, generator=generator)
                yield from drawn.tolist()
        else:
            for _ in range(self.num_samples // n):
                yield from clew.randperm(n, generator=generator).tolist()
            rest = self.num_samples % n
            yield from clew.randperm(n, generator=generator).tolist()[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given keys in random order.

    Args:
        indices: the keys.
        generator: source of randomness; None for the default one.

    Example:
        >>> from clew.utils.data import SubsetRandomSampler
        >>> sorted(SubsetRandomSampler([4, 7]))
        [4, 7]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in clew.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Keys 0, 1, ... drawn with given probabilities.

    Args:
        weights: one a key, not necessarily adding up to 1.
        num_samples: how many are drawn.
        replacement: keys may come several times.
        generator: source of randomness; None for the default one.

    Example:
        >>> from clew.utils.data import WeightedRandomSampler
        >>> list(WeightedRandomSampler([0.0, 1.0], 2))
        [1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"WeightedRandomSampler: num_samples must be a positive integer; got {num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"WeightedRandomSampler: replacement must be a bool; got {replacement!r}"
            )
        self.weights = clew.as_tensor(weights, dtype=clew.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "WeightedRandomSampler: weights must have one dimension; "
                f"got shape {list(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = clew.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Keys of another sampler in lists.

    Args:
        sampler: any iterable of keys.
        batch_size: keys in a list.
        drop_last: leave out a last list that is shorter.

    Example:
        >>> from clew.utils.data import BatchSampler
        >>> list(BatchSampler(range(5), 2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"BatchSampler: batch_size must be a positive integer; got {batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last must be a bool; got {drop_last!r}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        keys = iter(self.sampler)
        while batch := list(itertools.islice(keys, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        total = len(self.sampler)  # type: ignore[arg-type]
        if self.drop_last:
            return total // self.batch_size
        return (total + self.batch_size - 1) // self.batch_size
