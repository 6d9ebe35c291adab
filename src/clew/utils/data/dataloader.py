"""DataLoader: batches of a dataset, made here or in worker processes."""

from __future__ import annotations

import itertools
import os
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from clew import _C
from clew._base.origins import note_origin
from clew._base.provenance import user_level

from ._utils.collate import default_collate, default_convert
from ._utils.worker import (
    ExceptionWrapper,
    Fetcher,
    WorkerInfo,
    _IterableDatasetStopIteration,
    get_worker_info,
    run,
)
from .dataset import IterableDataset, Samples
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, _draw_seed

__all__ = ["DataLoader", "WorkerInfo", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> Fetcher:
        """What makes batches of a dataset of a kind."""
        return Fetcher(
            dataset, kind == _DatasetKind.Iterable, auto_collation, collate_fn, drop_last
        )


class _InfiniteConstantSampler(Sampler[None]):
    """Keys for a dataset that is iterated: there are none, so None for ever."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


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
        _require(num_workers >= 0, f"num_workers must not be negative; got {num_workers}")
        _require(timeout >= 0, f"timeout must not be negative; got {timeout}")
        if num_workers == 0:
            _require(prefetch_factor is None, "prefetch_factor needs num_workers > 0; got 0")
            _require(not persistent_workers, "persistent_workers needs num_workers > 0; got 0")
        elif prefetch_factor is None:
            prefetch_factor = 2
        _require(
            prefetch_factor is None or prefetch_factor > 0,
            f"prefetch_factor must be positive; got {prefetch_factor}",
        )
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

        settle: Any = getattr(type(dataset), "_pipe_settle", None)
        if settle is not None and isinstance(dataset, IterableDataset):
            # A data pipe of PyTorch's, which shuffles itself.
            self._dataset_kind = _DatasetKind.Iterable
            self.dataset, shuffle = settle(dataset, shuffle), None
            _require(not persistent_workers, "data pipes are seeded anew: workers must not persist")
        elif isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            _require(not shuffle, f"an IterableDataset has its own order; got shuffle={shuffle}")
            _require(sampler is None, f"an IterableDataset takes no sampler; got {sampler}")
            _require(
                batch_sampler is None,
                f"an IterableDataset takes no batch_sampler; got {batch_sampler}",
            )
        else:
            self._dataset_kind = _DatasetKind.Map
            if not (hasattr(dataset, "__getitem__") or hasattr(dataset, "__getitems__")):
                raise TypeError(
                    "DataLoader: dataset must have __getitem__ and __len__, or be an "
                    f"IterableDataset; got {type(dataset).__name__}"
                )
        _require(not (sampler is not None and shuffle), "sampler excludes shuffle; got both")
        if batch_sampler is not None:
            _require(
                batch_size == 1 and not shuffle and sampler is None and not drop_last,
                "batch_sampler excludes batch_size, shuffle, sampler and drop_last",
            )
            batch_size = None
            drop_last = False
        elif batch_size is None:
            _require(not drop_last, "batch_size=None excludes drop_last")

        keys: Any = sampler
        if keys is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                keys = _InfiniteConstantSampler()
            elif shuffle:
                keys = RandomSampler(self.dataset, generator=generator)
            else:
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


class _BaseDataLoaderIter:
    """One pass over the data; what both kinds of passes share.

    Loaders of other libraries derive passes from it: attributes and methods have PyTorch's names.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._auto_collation = loader._auto_collation
        self._collate_fn = loader.collate_fn
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._persistent_workers = loader.persistent_workers
        self._timeout = loader.timeout
        # Memory of this device needs no pinning.
        self._pin_memory, self._pin_memory_device = False, None
        self._shared_seed: int | None = None
        _BaseDataLoaderIter._reset(self, loader, first_iter=True)
        # Drawn before the sampler's own draws, as PyTorch does: equal seeds give equal orders.
        self._base_seed = _draw_seed(loader.generator)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        """Begins a pass, the first or another of the same loader."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._warned = False
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        if self._iterable and hasattr(type(self._dataset), "_pipe_seed"):
            self._shared_seed = self._dataset._pipe_seed(loader.generator)

    @property
    def _closed(self) -> bool:
        return False

    @property
    def _iterable(self) -> bool:
        return self._dataset_kind == _DatasetKind.Iterable

    @property
    def _world_size(self) -> int:
        import clew.distributed as dist

        return dist.get_world_size() if dist.is_initialized() else 1

    @property
    def _rank(self) -> int:
        import clew.distributed as dist

        return dist.get_rank() if dist.is_initialized() else 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")

    def _next_index(self) -> Any:
        """The keys of the next batch; StopIteration after the last."""
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        """The next batch; StopIteration after the last."""
        raise NotImplementedError

    def __next__(self) -> Any:
        if _C._trace_running():
            from clew.autograd.profiler import record_function

            with record_function(f"enumerate(DataLoader)#{type(self).__name__}.__next__"):
                batch = self._next_data()
        else:
            batch = self._next_data()
        self._num_yielded += 1
        length = self._IterableDataset_len_called
        if self._iterable and length is not None and not self._warned:
            size = self._loader.batch_size
            expected = length if size is None else -(-length // size)
            if self._num_yielded > expected:
                self._warned = True
                warnings.warn(
                    f"DataLoader: the dataset says its length is {length}, but gives more than "
                    f"{expected} batches; with workers, each must give its own share",
                    stacklevel=user_level(),
                )
        return batch


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches made in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.timeout:
            raise AssertionError(
                f"DataLoader: timeout needs num_workers > 0: this process cannot interrupt itself; "
                f"got {loader.timeout}"
            )
        super().__init__(loader)
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class _Pool:
    """The processes of one iterator and the pipes to and from them.

    It lives outside the iterator, which may be part of a cycle of garbage: the collector would
    finalize the connections of that cycle in any order, before they were asked to end the workers.
    """

    poll_seconds = 5.0

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.processes: list[Any] = []
        self.requests: list[Any] = []
        self.results: list[Any] = []
        self.closed = False

    def shutdown(self, grace: float = 5.0) -> None:
        """Asks the workers to end, and ends those that do not within `grace` seconds."""
        # A forked process has a copy of this object, but the workers are not its own.
        if self.closed or os.getpid() != self.owner:
            return
        self.closed = True
        for request in self.requests:
            try:
                request.send(None)
            except OSError:
                pass
            request.close()
        deadline = time.monotonic() + grace
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.terminate()
                process.join(self.poll_seconds)
                if process.is_alive():
                    process.kill()
                    process.join()
        for connection in self.results:
            connection.close()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches made in worker processes.

    Batch number i is asked of the workers in turn; `_waiting[i]` is the worker it was asked of,
    `_arrived[i]` the batch once it is here. Every message carries the epoch, so that what an
    interrupted epoch left in the pipes is recognised and dropped.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        import multiprocessing

        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._in_order = loader.in_order
        self._epoch = 0
        self._pool = pool = _Pool()
        self._processes = pool.processes
        self._requests = pool.requests
        self._results = pool.results
        weakref.finalize(self, pool.shutdown)
        try:
            for i in range(loader.num_workers):
                theirs, mine = context.Pipe(duplex=False)
                result, their_result = context.Pipe()  # a socket, which carries descriptors
                self._requests.append(mine)
                self._results.append(result)
                # Only a fork needs telling which ends are not the child's to keep.
                forked = context.get_start_method() == "fork"
                foreign = [*self._requests, *self._results] if forked else []
                process = context.Process(
                    target=run,
                    args=(
                        loader.dataset,
                        self._iterable,
                        loader._auto_collation,
                        loader.collate_fn,
                        loader.drop_last,
                        theirs,
                        their_result,
                        loader.worker_init_fn,
                        self._base_seed,
                        i,
                        loader.num_workers,
                        foreign,
                    ),
                    daemon=True,
                )
                process.start()
                self._processes.append(process)
                theirs.close()
                their_result.close()
        except BaseException:
            pool.shutdown()
            raise
        if self._iterable and hasattr(type(loader.dataset), "_pipe_seed"):
            # PyTorch seeds a data pipe once more here: later epochs go by that number, too.
            _draw_seed(loader.generator)
        self._begin()

    def _begin(self) -> None:
        self._asked = 0
        self._given = 0
        self._waiting: dict[int, int] = {}
        self._arrived: dict[int, Any] = {}
        self._active = [True] * len(self._processes)
        self._turn = 0
        for _ in range((self._loader.prefetch_factor or 1) * len(self._processes)):
            self._ask()

    @property
    def _closed(self) -> bool:
        return self._pool.closed

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        """Begins the next epoch with the same workers."""
        super()._reset(loader, first_iter)
        self._epoch += 1
        for request in self._requests:
            self._send(request, (self._epoch,))
        self._begin()

    def _send(self, request: Any, message: Any) -> None:
        try:
            request.send(message)
        except (BrokenPipeError, ConnectionResetError):
            self._dead_worker()

    def _ask(self) -> None:
        """Asks the next worker in turn for the next batch, if there is one."""
        for _ in self._processes:
            worker = self._turn
            self._turn = (worker + 1) % len(self._processes)
            if self._active[worker]:
                break
        else:
            return
        try:
            keys = self._next_index()
        except StopIteration:
            return
        self._waiting[self._asked] = worker
        self._send(self._requests[worker], (self._epoch, self._asked, keys))
        self._asked += 1

    def _dead_worker(self) -> None:
        from multiprocessing.connection import wait

        # A pipe may close a little before its process has ended, and that before it can be asked.
        ready = wait([p.sentinel for p in self._processes], 1.0)
        for process in self._processes:
            if process.sentinel in ready:
                process.join(1.0)
        dead = [p for p in self._processes if not p.is_alive()]
        what = ", ".join(f"{p.pid} (exit code {p.exitcode})" for p in dead)
        self._pool.shutdown()
        raise RuntimeError(f"DataLoader worker (pid(s) {what}) exited unexpectedly")

    def _receive(self) -> None:
        """Waits until some batch of this epoch has arrived."""
        from multiprocessing.connection import wait

        from ._utils.transfer import receive, unpack

        deadline = time.monotonic() + self._timeout if self._timeout else None
        waiting = {self._results[w]: w for w in self._waiting.values()}
        while True:
            sentinels = [self._processes[w].sentinel for w in waiting.values()]
            left = _Pool.poll_seconds
            if deadline is not None:
                left = min(left, max(0.0, deadline - time.monotonic()))
            ready: list[Any] = wait([*waiting, *sentinels], left)
            arrived = False
            for connection in ready:
                if connection in waiting:
                    try:
                        packed = receive(connection)
                    except (EOFError, ConnectionResetError):
                        self._dead_worker()
                    epoch, number, batch = unpack(packed)
                    if epoch == self._epoch:
                        self._arrived[number] = batch
                        arrived = True
            if arrived:
                return
            if any(sentinel in ready for sentinel in sentinels):
                self._dead_worker()
            if deadline is not None and time.monotonic() >= deadline:
                self._pool.shutdown(grace=0.1)
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def _take(self) -> tuple[int, Any] | None:
        """The next batch if it is here."""
        if not self._in_order:
            number = next(iter(self._arrived), None)
        else:
            number = next(iter(self._waiting))
        if number is None or number not in self._arrived:
            return None
        return number, self._arrived.pop(number)

    def _next_data(self) -> Any:
        while self._waiting and not self._pool.closed:
            taken = self._take()
            if taken is None:
                self._receive()
                continue
            number, batch = taken
            worker = self._waiting.pop(number)
            if isinstance(batch, _IterableDatasetStopIteration):
                self._active[worker] = False
                self._ask()
                continue
            self._ask()
            if isinstance(batch, ExceptionWrapper):
                batch.reraise()
            return batch
        if not self._loader.persistent_workers:
            self._pool.shutdown()
        raise StopIteration


# PyTorch's names for what users may give.
_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]
