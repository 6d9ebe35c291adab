"""What loaders of other libraries build on: passes, fetchers, the watch over worker processes."""

import multiprocessing
import os
import signal
import time
from collections import namedtuple
from multiprocessing import connection

import pytest

import clew
from clew._torch import _more
from clew._torch.utils.data.datapipes import datapipe
from clew._torch.utils.data.datapipes import iter as pipes
from clew._utils import ExceptionWrapper
from clew.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler
from clew.utils.data import dataloader as loaders
from clew.utils.data._utils import pin_memory, signal_handling, worker


class Counting(loaders._BaseDataLoaderIter):
    """A pass that knows how many keys it took, as those whose state is saved."""

    def __init__(self, loader):
        super().__init__(loader)
        self.taken = 0
        self._dataset_fetcher = loaders._DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_index(self):
        keys = super()._next_index()
        self.taken += 1
        return keys

    def _next_data(self):
        return self._dataset_fetcher.fetch(self._next_index())


class Loader(DataLoader):
    """Sets what passes read without the base's `__init__`."""

    def __init__(self, dataset, batch_size):
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, False
        self.num_workers, self.timeout, self.persistent_workers = 0, 0, False
        self.generator, self._IterableDataset_len_called = None, None
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = loaders._DatasetKind.Iterable
            self.sampler = loaders._InfiniteConstantSampler()
        else:
            self._dataset_kind = loaders._DatasetKind.Map
            self.sampler = SequentialSampler(dataset)
        self.batch_sampler = BatchSampler(self.sampler, batch_size, False)
        self.collate_fn = loaders.default_collate
        self._DataLoader__initialized = True
        self.check_worker_number_rationality()

    def _get_iterator(self):
        return Counting(self)


class Five(IterableDataset):
    def __iter__(self):
        return iter(range(5))


def test_a_pass_of_another_kind():
    loader = Loader(list(range(5)), 2)
    found = iter(loader)
    assert [b.tolist() for b in found] == [[0, 1], [2, 3], [4]]
    assert (found.taken, found._num_yielded, found._world_size, found._rank) == (3, 3, 1, 0)
    found._reset(loader)
    assert found._num_yielded == 0 and next(found).tolist() == [0, 1]
    with pytest.raises(ValueError, match="batch_size"):
        loader.batch_size = 3
    found = iter(Loader(Five(), 2))
    assert [b.tolist() for b in found] == [[0, 1], [2, 3], [4]]
    assert found._dataset_fetcher.ended and next(found._dataset_fetcher.dataset_iter, None) is None


def test_a_seed_of_a_pipe_is_told():
    pipe = pipes.IterableWrapper(range(4)).shuffle()
    clew.manual_seed(3)
    seed = iter(DataLoader(pipe))._shared_seed
    clew.manual_seed(3)
    assert seed == clew.empty((), dtype=clew.int64).random_().item()
    assert iter(DataLoader([1]))._shared_seed is None


def test_pipes_in_others_and_their_shares(monkeypatch):
    pipe = pipes.IterableWrapper(range(8)).sharding_filter()
    wrapped = datapipe._IterDataPipeSerializationWrapper(pipe)
    share = _more.find("utils.data.dataloader", "_sharding_worker_init_fn")
    with pytest.raises(RuntimeError, match="no worker"):
        share(None, 2, 1, 0)
    monkeypatch.setattr(worker, "_worker_info", worker.WorkerInfo(1, 2, 0, wrapped))
    called = []
    share(called.append, 2, 1, 1)
    assert called == [1] and list(wrapped) == [3, 7]
    mapped = datapipe._MapDataPipeSerializationWrapper([5, 6])
    assert len(mapped) == 2 and mapped[1] == 6


def _ends(code):
    os._exit(code)


def _waits():
    time.sleep(60)


@pytest.fixture
def started():
    """Processes, which are watched."""
    context, made = multiprocessing.get_context("fork"), []

    def start(target, *args):
        made.append(context.Process(target=target, args=args, daemon=True))
        made[-1].start()
        signal_handling._set_worker_pids(id(made), [made[-1].pid])
        return made[-1]

    yield start
    signal_handling._remove_worker_pids(id(made))
    made[-1].kill()
    made[-1].join()


def _told(process):
    """What is raised once the process has ended."""
    connection.wait([process.sentinel], 30)
    deadline = time.monotonic() + 5
    try:
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        signal_handling._error_if_any_worker_fails()
    except RuntimeError as error:
        return str(error)
    return None


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs waitid")
def test_the_watch_over_workers(started):
    process = started(_ends, 3)
    assert f"(pid {process.pid}) exited unexpectedly with exit code 3" in _told(process)
    assert _told(process) is None  # told once


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs waitid")
@pytest.mark.parametrize(("number", "text"), [(signal.SIGKILL, "by signal: SIGKILL"), (15, None)])
def test_the_watch_knows_signals(started, number, text):
    process = started(_waits)
    signal_handling._error_if_any_worker_fails()
    os.kill(process.pid, number)
    told = _told(process)
    assert told is None if text is None else text in told


def test_watched_once():
    signal_handling._set_worker_pids(1, [])
    with pytest.raises(ValueError, match="already"):
        signal_handling._set_worker_pids(1, [])
    signal_handling._remove_worker_pids(1)
    with pytest.raises(ValueError, match="no workers"):
        signal_handling._remove_worker_pids(1)
    assert worker.ManagerWatchdog().is_alive()


def test_pinned_parts():
    class Own:
        def pin_memory(self):
            return "pinned"

    Pair = namedtuple("Pair", "a b")
    x = clew.ones(2)
    got = pin_memory.pin_memory({"a": [x, "s"], "b": Pair(Own(), 3), "c": (Own(),)})
    assert got["a"][0].tolist() == [1, 1] and got["a"][1] == "s"
    assert got["b"] == Pair("pinned", 3) and got["c"] == ("pinned",)


def test_errors_of_workers_are_of_one_kind():
    try:
        raise KeyError("a key")
    except KeyError:
        wrapped = ExceptionWrapper(where="in a worker")
    with pytest.raises(KeyError) as caught:
        wrapped.reraise()
    assert str(caught.value).startswith("Caught KeyError in a worker.\nOriginal Traceback")
    assert worker.ExceptionWrapper is ExceptionWrapper
