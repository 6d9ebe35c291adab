"""Datasets: what can be indexed or iterated to give samples."""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, Protocol, TypeVar

import clew
from clew import Tensor
from clew._base.provenance import user_level

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Samples(Protocol[T_co]):
    """What a loader can read: a dataset, a list, a range, anything with ``__getitem__``."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class Dataset(Generic[T_co]):
    """Something that gives the sample for a key; subclasses define `__getitem__`.

    Most also define `__len__`. `__getitems__(keys)`, if defined, fetches a whole batch at once.

    Example:
        >>> from clew.utils.data import Dataset
        >>> class Squares(Dataset):
        ...     def __len__(self):
        ...         return 3
        ...     def __getitem__(self, i):
        ...         return i * i
        >>> Squares()[2]
        4
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__}.__getitem__ is not defined")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Something that gives samples one after another; subclasses define `__iter__`.

    With several loader workers each has a copy: divide the work with `get_worker_info()`.

    Example:
        >>> from clew.utils.data import IterableDataset
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> list(Count())
        [0, 1, 2]
    """

    def __add__(self, other: Dataset[T_co]) -> ChainDataset[T_co]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples that are slices of tensors along their first dimension.

    Args:
        tensors: of equal first dimension.

    Example:
        >>> from clew.utils.data import TensorDataset
        >>> TensorDataset(clew.arange(3), clew.arange(3) * 2)[1]
        (tensor(1), tensor(2))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [t.size(0) for t in tensors]
        assert len(set(sizes)) <= 1, (
            f"TensorDataset: tensors must have the same first dimension; got {sizes}"
        )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Several datasets side by side: a sample is a tuple, or a dict, of their samples.

    Args:
        args: datasets whose samples make a tuple, or
        kwargs: datasets whose samples make a dict.

    Example:
        >>> from clew.utils.data import StackDataset
        >>> StackDataset(a=[1, 2], b=[3, 4])[0]
        {'a': 1, 'b': 3}
    """

    datasets: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: give datasets either by position or by name")
        self.datasets = args if args else kwargs
        lengths = [len(d) for d in (args or kwargs.values())]
        if len(set(lengths)) != 1:
            raise ValueError(f"StackDataset: datasets must have the same length; got {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {k: d[index] for k, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        columns = {}
        named = isinstance(self.datasets, dict)
        items = self.datasets.items() if named else enumerate(self.datasets)
        for key, dataset in items:
            columns[key] = _get_items(dataset, indices, "StackDataset")
        if named:
            return [{k: column[i] for k, column in columns.items()} for i in range(len(indices))]
        return [tuple(column[i] for column in columns.values()) for i in range(len(indices))]

    def __len__(self) -> int:
        return self._length


def _get_items(dataset: Any, indices: Sequence[Any], name: str) -> Sequence[Any]:
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(
            f"{name}: __getitems__ must return {len(indices)} samples; got {len(items)}"
        )
    return items


class ConcatDataset(Dataset[T_co]):
    """Several datasets one behind the other.

    Args:
        datasets: with lengths.

    Example:
        >>> from clew.utils.data import ConcatDataset
        >>> ConcatDataset([[1, 2], [3]])[2]
        3
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The sums of the lengths up to each dataset.

        Args:
            sequence: the datasets.
        """
        return list(accumulate(len(d) for d in sequence))

    def __init__(self, datasets: Iterable[Samples[T_co]]) -> None:
        super().__init__()
        self.datasets = list(datasets)
        assert len(self.datasets) > 0, "ConcatDataset: datasets must not be empty"
        for d in self.datasets:
            assert not isinstance(d, IterableDataset), (
                "ConcatDataset: an IterableDataset cannot be indexed; use ChainDataset"
            )
        self.cumulative_sizes = self.cumsum(self.datasets)

    @property
    def cummulative_sizes(self) -> list[int]:
        """An older name of cumulative_sizes."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            FutureWarning,
            stacklevel=user_level(),
        )
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError(f"ConcatDataset: index must be at least {-len(self)}; got {idx}")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        if which == len(self.datasets):
            raise IndexError(f"ConcatDataset: index must be under {len(self)}; got {idx}")
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]


class ChainDataset(IterableDataset[T_co]):
    """Several iterable datasets one after the other.

    Args:
        datasets: each an IterableDataset.

    Example:
        >>> from clew.utils.data import ChainDataset, IterableDataset
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(2))
        >>> list(ChainDataset([Count(), Count()]))
        [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for d in self.datasets:
            assert isinstance(d, IterableDataset), "ChainDataset: datasets must be IterableDataset"
            yield d

    def __iter__(self) -> Iterator[T_co]:
        for d in self._checked():
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self._checked())


class Subset(Dataset[T_co]):
    """Some samples of a dataset.

    Args:
        dataset: the whole.
        indices: which samples, in order.

    Example:
        >>> from clew.utils.data import Subset
        >>> Subset([1, 2, 3], [2, 0])[0]
        3
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Samples[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> Sequence[T_co]:
        return _get_items(self.dataset, [self.indices[i] for i in indices], "Subset")

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Samples[T], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[T]]:
    """Divides a dataset at random into parts without common samples.

    Args:
        dataset: what to divide.
        lengths: of the parts, or fractions that add up to 1.
        generator: source of the random order; None for the default one.

    Returns:
        One Subset a length.

    Example:
        >>> from clew.utils.data import random_split
        >>> [len(part) for part in random_split(range(10), [0.7, 0.3])]
        [7, 3]
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        counts = []
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(
                    f"random_split: fraction {i} must be between 0 and 1; got {fraction}"
                )
            counts.append(math.floor(total * fraction))
        for i in range(total - sum(counts)):  # what rounding left over goes round
            counts[i % len(counts)] += 1
        for i, count in enumerate(counts):
            if count == 0:
                warnings.warn(
                    f"random_split: part {i} has no samples; it is an empty dataset",
                    stacklevel=user_level(),
                )
        lengths = counts
    if sum(lengths) != total:
        raise ValueError(
            f"random_split: lengths must add up to {total}, or fractions to 1; got {list(lengths)}"
        )
    order = clew.randperm(total, generator=generator).tolist()
    ends = list(accumulate(int(n) for n in lengths))
    return [Subset(dataset, order[end - int(n) : end]) for end, n in zip(ends, lengths)]
