"""What runs in a worker process: fetch the asked samples, collate them, send the batch."""

from __future__ import annotations

import os
import pickle
import queue
import random
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clew._utils import ExceptionWrapper

__all__ = ["ExceptionWrapper", "WorkerInfo", "get_worker_info"]


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker this process is."""

    id: int
    num_workers: int
    seed: int
    dataset: Any

    def __repr__(self) -> str:
        return (
            f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, "
            f"dataset={self.dataset})"
        )


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The number, seed and dataset copy of this loader worker; None in the main process.

    Returns:
        An object with `id`, `num_workers`, `seed` and `dataset`.

    Example:
        >>> from clew.utils.data import get_worker_info
        >>> get_worker_info() is None
        True
    """
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """Says that a worker's copy of an iterable dataset has no more samples."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Asks a worker to begin anew; with the seed of a data pipe."""

    seed: int | None = None


class ManagerWatchdog:
    """Tells a worker whether the process that started it is there still."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()

    def is_alive(self) -> bool:
        """Whether the parent is the process that it was."""
        return os.getppid() == self.manager_pid


class Fetcher:
    """Makes a batch from keys, or from the next samples of an iterable dataset."""

    def __init__(
        self, dataset: Any, iterable: bool, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        self.dataset = dataset
        self.dataset_iter: Iterator[Any] | None = iter(dataset) if iterable else None
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, keys: Any) -> Any:
        """The collated batch; StopIteration once an iterable dataset is exhausted."""
        if self.dataset_iter is not None:
            return self.collate_fn(self._next(keys))
        try:
            if not self.auto_collation:
                data = self.dataset[keys]
            elif callable(getattr(self.dataset, "__getitems__", None)):
                data = self.dataset.__getitems__(keys)
            else:
                data = [self.dataset[key] for key in keys]
            return self.collate_fn(data)
        except StopIteration as stop:  # it would end the loop over the loader without a word
            raise RuntimeError("DataLoader: the dataset raised StopIteration") from stop

    def _next(self, keys: Any) -> Any:
        assert self.dataset_iter is not None
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return next(self.dataset_iter)
        data = []
        for _ in keys:
            try:
                data.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not data or (self.drop_last and len(data) < len(keys)):
            raise StopIteration
        return data


def _wrapped(error: BaseException, where: str) -> ExceptionWrapper:
    made = ExceptionWrapper((type(error), error, error.__traceback__), where)
    try:
        pickle.dumps(made.exc_type)
    except Exception:  # of a class within a function, say: its text and lines go all the same
        made.exc_type = RuntimeError
        made.where += f", in place of {type(error).__name__}, whose class cannot be pickled"
    return made


def _seed(base_seed: int, worker_id: int) -> int:
    import numpy as np

    import clew

    seed = base_seed + worker_id
    random.seed(seed)
    clew.manual_seed(seed)
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(entropy).generate_state(4))
    return seed


def _sender(connection: Any, outgoing: queue.SimpleQueue[Any]) -> None:
    from .transfer import send

    try:
        while (payload := outgoing.get()) is not None:
            send(connection, payload)
    except OSError:
        pass  # nobody listens any more


def _requests(connection: Any) -> Iterator[Any]:
    """What the main process asks for, until it says that it is over, or is gone."""
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    sentinel = [] if parent is None else [parent.sentinel]
    while connection in wait([connection, *sentinel]):
        try:
            request = connection.recv()
        except EOFError:
            return
        if request is None:
            return
        yield request
        del request  # it may be large


def run(
    dataset: Any,
    iterable: bool,
    auto_collation: bool,
    collate_fn: Any,
    drop_last: bool,
    requests: Any,
    results: Any,
    init_fn: Any,
    base_seed: int,
    worker_id: int,
    num_workers: int,
    foreign: list[Any],
) -> None:
    """The life of a worker.

    Requests are `(epoch, number, keys)`, `(epoch,)` to begin an epoch anew, or None to end.
    Results are `(epoch, number, batch)`; a batch may be an ExceptionWrapper, or say that an
    iterable dataset ended.
    A thread sends them, so that the next batch is made while the last one waits to be read.
    """
    import clew

    from .transfer import pack

    global _worker_info
    for connection in foreign:  # the other ends, which a fork has left open here
        connection.close()
    where = f"in DataLoader worker process {worker_id}"
    outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_sender, args=(results, outgoing), daemon=True).start()

    def send(epoch: int, number: int, batch: Any) -> None:
        try:
            payload = pack((epoch, number, batch))
        except Exception as error:
            payload = pack((epoch, number, _wrapped(error, where)))
        outgoing.put(payload)

    clew.set_num_threads(1)
    failure: ExceptionWrapper | None = None
    fetcher: Fetcher | None = None

    def begin() -> Fetcher:
        return Fetcher(dataset, iterable, auto_collation, collate_fn, drop_last)

    try:
        try:
            seed = _seed(base_seed, worker_id)
            _worker_info = WorkerInfo(worker_id, num_workers, seed, dataset)
            if hasattr(type(dataset), "_pipe_share"):  # a data pipe of PyTorch's
                dataset._pipe_share(num_workers, worker_id)
            if init_fn is not None:
                init_fn(worker_id)
            fetcher = begin()
        except Exception as error:
            failure = _wrapped(error, where)

        for request in _requests(requests):
            if len(request) == 1:
                if failure is None:
                    try:
                        fetcher = begin()
                    except Exception as error:
                        failure = _wrapped(error, where)
                continue
            epoch, number, keys = request
            if failure is not None:
                send(epoch, number, failure)
                continue
            batch: Any
            try:
                assert fetcher is not None
                batch = fetcher.fetch(keys)
            except StopIteration as stop:
                end = _IterableDatasetStopIteration(worker_id)
                batch = end if iterable else _wrapped(stop, where)
            except Exception as error:
                batch = _wrapped(error, where)
            send(epoch, number, batch)
            del batch, keys, request
    except KeyboardInterrupt:
        pass  # the main process reports it
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers of 32 bits that seed NumPy's generator in a worker, each worker's its own."""
    import numpy as np

    return np.random.SeedSequence([worker_id, base_seed]).generate_state(4).tolist()


def _worker_loop(*args: Any, **kwargs: Any) -> None:
    """Raises: clew's workers run another loop."""
    raise NotImplementedError("_worker_loop: use a DataLoader; its workers run a loop of their own")
