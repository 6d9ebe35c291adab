"""The iterators of a DataLoader: in this process, and over worker processes."""

from __future__ import annotations

import os
import pickle
import time
import warnings
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from clew import _C
from clew._base.provenance import user_level

from ._utils.worker import ExceptionWrapper, Fetcher, _IterableDatasetStopIteration, run
from .sampler import _draw_seed

if TYPE_CHECKING:
    from .dataloader import DataLoader


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
                try:
                    process.start()
                except (AttributeError, TypeError, pickle.PicklingError):
                    method = context.get_start_method()
                    if method != "fork":  # Python's own choice from 3.14 on is forkserver
                        warnings.warn(
                            f"DataLoader: a worker could not be started by {method!r}, which needs "
                            "a dataset, collate_fn and worker_init_fn that can be pickled: classes "
                            "and functions of a module. multiprocessing_context='fork' makes "
                            "workers copies of this process",
                            stacklevel=user_level(),
                        )
                    raise
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
