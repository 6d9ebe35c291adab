"""DataLoader: batches of a dataset, made here or in worker processes."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from clew._base.origins import note_origin
from clew._base.provenance import user_level

from ._iterators import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from ._utils.collate import default_collate, default_convert
from ._utils.worker import (
    WorkerInfo,
    get_worker_info,
)
from .dataset import IterableDataset, Samples
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "WorkerInfo", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)


class _InfiniteConstantSampler(Sampler[None]):
    """Keys for a dataset that is iterated: there are none, so None for ever."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    _require(num_workers >= 0, f"num_workers must not be negative; got {num_workers}")
    _require(timeout >= 0, f"timeout must not be negative; got {timeout}")
    if num_workers == 0:
        _require(prefetch_factor is None, "prefetch_factor needs num_workers > 0; got 0")
        _require(not persistent_workers, "persistent_workers needs num_workers > 0; got 0")
    _require(
        prefetch_factor is None or prefetch_factor > 0,
        f"prefetch_factor must be positive; got {prefetch_factor}",
    )


def _check_order(
    dataset: Any, iterable: bool, shuffle: bool | None, sampler: Any, batch_sampler: Any
) -> None:
    """Raises where a dataset cannot be read in the order that is asked for."""
    if iterable:
        _require(not shuffle, f"an IterableDataset has its own order; got shuffle={shuffle}")
        _require(sampler is None, f"an IterableDataset takes no sampler; got {sampler}")
        _require(
            batch_sampler is None, f"an IterableDataset takes no batch_sampler; got {batch_sampler}"
        )
    elif not (hasattr(dataset, "__getitem__") or hasattr(dataset, "__getitems__")):
        raise TypeError(
            "DataLoader: dataset must have __getitem__ and __len__, or be an "
            f"IterableDataset; got {type(dataset).__name__}"
        )


def _check_batching(
    batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    _require(not (sampler is not None and shuffle), "sampler excludes shuffle; got both")
    if batch_sampler is not None:
        _require(
            batch_size == 1 and not shuffle and sampler is None and not drop_last,
            "batch_sampler excludes batch_size, shuffle, sampler and drop_last",
        )
    elif batch_size is None:
        _require(not drop_last, "batch_size=None excludes drop_last")


class DataLoader(Generic[T_co]):
    """Gives the batches of a dataset, in the order of a sampler.

    Args:
        dataset: with `__getitem__`, or an IterableDataset.
        batch_size: samples in a batch; None: samples come singly and are not collated.
        shuffle: a new random order every time; excludes `sampler`.
        sampler: an iterable of keys.
        batch_sampler: an iterable of lists of keys; excludes the four options of batching.
        num_workers: processes that make batches; 0: this one does.
        collate_fn: from a list of samples to a batch; None for `default_collate`.
        pin_memory: accepted; memory of this device needs no pinning.
        drop_last: leave out a last batch that is smaller.
        timeout: most seconds to wait for a worker's batch; 0: for ever. Needs workers.
        worker_init_fn: called in every worker with its number, before anything else.
        multiprocessing_context: "fork", "spawn", "forkserver" or a context; None for the default.
        generator: source of the random order and of the workers' seeds.
        prefetch_factor: batches asked of every worker in advance; None for 2.
        persistent_workers: keep the workers from one iteration to the next.
        pin_memory_device: accepted as pin_memory is.
        in_order: give batches in order, even when a later one is ready earlier.

    Example:
        >>> from clew.utils.data import DataLoader
        >>> for batch in DataLoader([1, 2, 3], batch_size=2):
        ...     print(batch)
        tensor([1, 2])
        tensor([3])
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    prefetch_factor: int | None
    __initialized = False  # of PyTorch's name, which subclasses set

    def __init__(
        self,
        dataset: Samples[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if num_workers != 0 and prefetch_factor is None:
            prefetch_factor = 2
        note_origin(self)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order

        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if iterable and (settle := getattr(type(dataset), "_pipe_settle", None)) is not None:
            # A data pipe of PyTorch's, which shuffles itself.
            self.dataset, shuffle = settle(dataset, shuffle), None
            _require(not persistent_workers, "data pipes are seeded anew: workers must not persist")
        else:
            _check_order(dataset, iterable, shuffle, sampler, batch_sampler)
        _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False

        keys: Any = sampler
        if keys is None and iterable:
            keys = _InfiniteConstantSampler()
        elif keys is None and shuffle:
            keys = RandomSampler(self.dataset, generator=generator)
        elif keys is None:
            keys = SequentialSampler(self.dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(keys, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = keys
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if batch_sampler is not None else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self._iterator: _BaseDataLoaderIter | None = None
        self.check_worker_number_rationality()
        self.__initialized = True

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than there are processors."""
        if self.num_workers == 0:
            return
        try:
            available = len(os.sched_getaffinity(0))
        except AttributeError:
            available = os.cpu_count() or 1
        if self.num_workers > available:
            warnings.warn(
                f"DataLoader: num_workers={self.num_workers} on {available} processors may be "
                "slower than fewer workers",
                stacklevel=user_level(),
            )

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            _require(self.num_workers > 0, "multiprocessing_context needs num_workers > 0; got 0")
            import multiprocessing
            from multiprocessing.context import BaseContext

            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                _require(
                    context in methods,
                    f"multiprocessing_context must be one of {methods}; got {context!r}",
                )
                context = multiprocessing.get_context(context)
            if not isinstance(context, BaseContext):
                raise TypeError(
                    "DataLoader: multiprocessing_context must be a context or the name of a start "
                    f"method; got {context!r}"
                )
        self.__multiprocessing_context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in (
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        ):
            raise ValueError(f"{name} attribute should not be set after DataLoader is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        """A pass over the data, of the kind that the number of workers asks for."""
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0 or not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None or self._iterator._closed:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Iterable:
            length = self._IterableDataset_len_called = len(self.dataset)
            if self.batch_size is None:
                return length
            if self.drop_last:
                return length // self.batch_size
            return -(-length // self.batch_size)
        return len(self._index_sampler)


def _require(ok: bool, text: str) -> None:
    if not ok:
        raise ValueError(f"DataLoader: {text}")


# PyTorch's names for what users may give.
_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]
