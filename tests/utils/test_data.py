"""The loader, in this process and with workers."""

import gc
import multiprocessing
import os
import pickle
import random
import time

import numpy as np
import pytest
from small_datasets import Count, Squares, seeded

import clew
from clew.utils.data import (
    DataLoader,
    Dataset,
    Sampler,
    SequentialSampler,
    TensorDataset,
    get_worker_info,
)
from clew.utils.data import dataloader as loaders

pytestmark = pytest.mark.filterwarnings("ignore:DataLoader. num_workers")


@pytest.fixture(autouse=True)
def _fork():
    """Workers are forked, so that they may get local functions; some Pythons would spawn them."""
    multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(None, force=True)


WORKERS = [0, 2]


@pytest.mark.parametrize("workers", WORKERS)
def test_order_and_batches(workers):
    loader = DataLoader(Squares(), batch_size=5, num_workers=workers)
    batches = list(loader)
    assert len(loader) == len(batches) == 5
    assert [b[1].tolist() for b in batches] == [
        list(range(i, min(i + 5, 23))) for i in range(0, 23, 5)
    ]
    assert batches[1][0].flatten().tolist() == [25, 36, 49, 64, 81]
    short = DataLoader(Squares(), batch_size=5, drop_last=True, num_workers=workers)
    assert len(short) == len(list(short)) == 4


def order(**options):
    clew.manual_seed(7)
    loader = DataLoader(range(12), batch_size=4, shuffle=True, **options)
    return [[b.tolist() for b in loader] for _ in range(2)]


def test_shuffling():
    first, second = order()
    assert first == SHUFFLED_SEED_7[0] and second == SHUFFLED_SEED_7[1]
    assert order(num_workers=2) == [first, second]
    own = order(generator=seeded(3))
    assert own == order(generator=seeded(3), num_workers=1)
    assert own == SHUFFLED_GENERATOR_3


SHUFFLED_SEED_7 = [
    [[11, 5, 1, 8], [6, 7, 2, 0], [3, 9, 4, 10]],
    [[5, 11, 7, 0], [4, 8, 10, 2], [6, 1, 9, 3]],
]
SHUFFLED_GENERATOR_3 = [
    [[1, 4, 2, 6], [0, 9, 7, 11], [10, 5, 3, 8]],
    [[5, 3, 6, 11], [2, 4, 10, 0], [1, 8, 9, 7]],
]


@pytest.mark.parametrize("workers", WORKERS)
def test_no_batches(workers):
    loader = DataLoader([np.arange(2), np.arange(3)], batch_size=None, num_workers=workers)
    assert [b.tolist() for b in loader] == [[0, 1], [0, 1, 2]]
    assert len(loader) == 2


@pytest.mark.parametrize("workers", WORKERS)
def test_own_samplers_and_collation(workers):
    loader = DataLoader(
        range(10), batch_sampler=[[1, 2], [9], [4, 4, 4]], collate_fn=sum, num_workers=workers
    )
    assert list(loader) == [3, 9, 12] and len(loader) == 3
    loader = DataLoader(range(10), sampler=[3, 1], num_workers=workers)
    assert [b.tolist() for b in loader] == [[3], [1]]


class Many(Squares):
    def __getitems__(self, keys):
        return [(clew.tensor([-k]), k) for k in keys]


@pytest.mark.parametrize("workers", WORKERS)
def test_batched_fetching(workers):
    loader = DataLoader(Many(4), batch_size=4, num_workers=workers)
    assert next(iter(loader))[0].flatten().tolist() == [0, -1, -2, -3]


@pytest.mark.parametrize("batch_size", [None, 3])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_iterable(workers, batch_size):
    loader = DataLoader(Count(10), batch_size=batch_size, num_workers=workers)
    for _ in range(2):
        got = list(loader)
        flat = got if batch_size is None else [x for b in got for x in b.tolist()]
        assert sorted(flat) == list(range(10))
    if workers == 0 and batch_size:
        assert [len(b) for b in got] == [3, 3, 3, 1]
        dropped = DataLoader(Count(10), batch_size=3, drop_last=True)
        assert [len(b) for b in dropped] == [3, 3, 3]


def test_iterable_length_is_checked():
    loader = DataLoader(Count(6, share=False, length=6), batch_size=3, num_workers=2)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="length is 6"):
        assert len(list(loader)) == 4


class Noise(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = get_worker_info()
        return info.id, info.seed, clew.rand(()).item(), random.random(), np.random.rand()


def test_workers_have_their_own_seeds():
    def numbers():
        clew.manual_seed(5)
        loader = DataLoader(Noise(), batch_size=None, num_workers=2, collate_fn=lambda x: x)
        return list(loader), list(loader)

    first, second = numbers()
    assert [x[0] for x in first] == [0, 1, 0, 1]
    assert first[1][1] == first[0][1] + 1
    for k in (2, 3, 4):
        assert len({x[k] for x in first + second}) == 8
    assert numbers() == (first, second)


def test_worker_info_and_init():
    assert get_worker_info() is None
    log = multiprocessing.get_context("fork").SimpleQueue()

    def init(i):
        info = get_worker_info()
        log.put((i, info.id, info.num_workers, os.getpid(), len(info.dataset)))

    list(DataLoader(Squares(2), num_workers=2, worker_init_fn=init))
    seen = sorted(log.get() for _ in range(2))
    assert [s[:3] for s in seen] == [(0, 0, 2), (1, 1, 2)]
    assert len({s[3] for s in seen} | {os.getpid()}) == 3


class Bad(Squares):
    def __init__(self, error):
        super().__init__(8)
        self.error = error

    def __getitem__(self, i):
        if i == 5:
            raise self.error
        return i


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(KeyError("five"), KeyError), (ValueError("five"), ValueError), (Odd(1, 2), RuntimeError),
     (StopIteration("five"), RuntimeError)],
    ids=repr,
)  # fmt: skip
def test_exceptions_of_workers(error, kind):
    got = []
    with pytest.raises(kind) as caught:
        for batch in DataLoader(Bad(error), num_workers=2):
            got.append(batch.item())
    text = str(caught.value)
    assert got == [0, 1, 2, 3, 4]
    assert "in DataLoader worker process 1" in text and "raise self.error" in text


def test_the_loader_goes_on_after_an_exception():
    it = iter(DataLoader(Bad(ValueError("five")), num_workers=2))
    got = []
    while True:
        try:
            got.append(next(it).item())
        except ValueError:
            got.append("error")
        except StopIteration:
            break
    assert got == [0, 1, 2, 3, 4, "error", 6, 7]


def test_failures_at_the_start_and_in_sending():
    def fail(i):
        raise ValueError("init failed")

    with pytest.raises(ValueError, match="init failed"):
        list(DataLoader(Squares(), num_workers=1, worker_init_fn=fail))
    loader = DataLoader([1, 2], num_workers=1, collate_fn=lambda b: lambda: b)
    with pytest.raises(Exception, match=r"(?s)worker process 0.*[Pp]ickl"):
        list(loader)


class Dies(Squares):
    def __getitem__(self, i):
        if i == 3:
            os._exit(5)
        return i


class Unsendable(Dataset):
    """Raises what cannot be pickled."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        class Broken(Exception):
            pass

        raise Broken(f"sample {i} is broken")


def test_an_error_whose_class_cannot_be_sent_keeps_its_text():
    with pytest.raises(RuntimeError) as caught:
        list(DataLoader(Unsendable(), num_workers=1))
    told = str(caught.value)
    assert told.startswith("Caught RuntimeError in DataLoader worker process 0, in place of Broken")
    assert "Broken: sample 0 is broken" in told and "raise Broken" in told


def test_a_worker_that_dies_is_noticed():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"exited unexpectedly"):
        list(DataLoader(Dies(), num_workers=2))
    assert time.monotonic() - start < 5


class Slow(Squares):
    def __getitem__(self, i):
        time.sleep(60 if i == 2 else 0)
        return i


class Overtaken(Squares):
    """Its first sample waits until the second one was made."""

    def __init__(self, n):
        super().__init__(n)
        self.second = multiprocessing.Event()

    def __getitem__(self, i):
        if i == 1:
            self.second.set()
        elif self.second.wait(60):
            time.sleep(0.5)
        return i


def test_timeout():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"timed out after 0\.5 seconds"):
        list(DataLoader(Slow(), num_workers=1, timeout=0.5))
    assert time.monotonic() - start < 8


def test_timeout_needs_workers():
    loader = DataLoader(range(3), timeout=1)
    with pytest.raises(AssertionError, match="timeout needs num_workers > 0"):
        iter(loader)


def test_out_of_order():
    loader = DataLoader(Overtaken(2), num_workers=2, in_order=False)
    assert [b.item() for b in loader] == [1, 0]
    loader = DataLoader(Overtaken(2), num_workers=2)
    assert [b.item() for b in loader] == [0, 1]


def children():
    return [p for p in multiprocessing.active_children() if p.is_alive()]


def test_interrupted_iteration_ends_the_workers():
    gc.collect()
    for earlier in children():  # of other tests, on their way out
        earlier.join(10)
    before = len(children())
    it = iter(DataLoader(Squares(1000), num_workers=2))
    next(it)
    assert len(children()) == before + 2
    del it
    gc.collect()
    assert len(children()) == before
    it = iter(DataLoader(Squares(4), num_workers=2))
    assert len(children()) == before + 2
    list(it)
    assert len(children()) == before
    with pytest.raises(StopIteration):
        next(it)


class EarlyPipes(type(multiprocessing.get_context("fork"))):
    """A context whose connections are older than the iterator that uses them."""

    def __init__(self):
        self.pipes = [super(EarlyPipes, self).Pipe(duplex=False) for _ in range(2)]

    def Pipe(self, duplex=True):
        return self.pipes.pop()


def test_workers_end_with_an_iterator_in_a_cycle_of_garbage():
    gc.collect()
    context = EarlyPipes()
    before = len(children())
    it = iter(DataLoader(Squares(1000), num_workers=1, multiprocessing_context=context))
    it.itself = it
    next(it)
    assert len(children()) == before + 1
    del it, context
    # The collector finalizes what is older first: the connections, then the iterator.
    gc.collect()
    assert len(children()) == before


def test_persistent_workers():
    loader = DataLoader(
        Noise(), batch_size=None, num_workers=2, persistent_workers=True, collate_fn=lambda x: x
    )
    seeds = [[x[1] for x in loader] for _ in range(3)]
    assert seeds[0] == seeds[1] == seeds[2]  # the same workers
    loader = DataLoader(Squares(50), num_workers=2, persistent_workers=True, prefetch_factor=4)
    for n in (1, 3, 50):  # what an interrupted epoch left behind does not reach the next
        got = []
        for _, i in loader:
            got.append(i.item())
            if len(got) == n:
                break
        assert got == list(range(n))
    loader = DataLoader(
        Squares(50), num_workers=2, persistent_workers=True, prefetch_factor=4, shuffle=True
    )
    next(iter(loader))
    assert sorted(i.item() for _, i in loader) == list(range(50))
    loader = DataLoader(Count(9), num_workers=2, persistent_workers=True)
    assert [sorted(b.item() for b in loader) for _ in range(2)] == [list(range(9))] * 2
    del loader
    gc.collect()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_start_methods(method):
    loader = DataLoader(Squares(4), batch_size=2, num_workers=1, multiprocessing_context=method)
    assert [b[1].tolist() for b in loader] == [[0, 1], [2, 3]]


class Large(Squares):
    def __getitem__(self, i):
        return clew.full((200_000,), float(i)), clew.arange(3)


@pytest.mark.parametrize("there", [True, False])
def test_large_tensors(there, monkeypatch):
    """They share storages, are writable, and leave no files or descriptors behind."""
    from clew.utils.data._utils import transfer

    if there and not hasattr(os, "memfd_create"):
        pytest.skip("no files in memory")
    read = []

    def noting_read(*args):
        read.append(args)
        return preadv(*args)

    preadv = transfer.os.preadv
    monkeypatch.setattr(transfer.os, "preadv", noting_read)
    if not there:
        monkeypatch.delattr(transfer.os, "memfd_create", raising=False)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    def twice(batch):
        x = clew.stack([b[0] for b in batch])
        return {"x": x, "row": x[1], "half": x.half(), "small": batch[0][1]}

    loader = DataLoader(Large(6), batch_size=2, collate_fn=twice, num_workers=1)
    for i, batch in enumerate(loader):
        assert batch["row"][0].item() == 2 * i + 1 and batch["half"].dtype == clew.float16
        batch["x"].fill_(-1)
        assert batch["row"][5].item() == -1 and batch["small"].tolist() == [0, 1, 2]
    it = iter(loader)
    next(it)
    del it, loader
    gc.collect()
    assert bool(read) == there
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before


SHARED_SAMPLES = clew.zeros(10, 30_000)


class Views(Squares):
    def __getitem__(self, i):
        return SHARED_SAMPLES[i]


def test_shared_samples_stay_shared():
    """What lies in shared memory already is sent as it is."""
    SHARED_SAMPLES.share_memory_()
    for row in DataLoader(Views(10), batch_size=None, num_workers=1):
        assert row.untyped_storage() == SHARED_SAMPLES.untyped_storage()
        row.add_(1)
    assert SHARED_SAMPLES.sum().item() == 300_000


def test_a_killed_worker_is_reported():
    class Dies(Squares):
        def __getitem__(self, i):
            if i == 3:
                os.kill(os.getpid(), 9)
            return clew.zeros(100_000)

    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Dies(10), num_workers=1))


def test_big_batches_come_through():
    data = clew.arange(3_000_000, dtype=clew.float32).view(3, -1)
    loader = DataLoader(TensorDataset(data), num_workers=2, prefetch_factor=1)
    for i, (batch,) in enumerate(loader):
        assert clew.equal(batch[0], data[i])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_workers": -1}, ValueError),
        ({"timeout": -1}, ValueError),
        ({"prefetch_factor": 2}, ValueError),
        ({"prefetch_factor": 0, "num_workers": 1}, ValueError),
        ({"persistent_workers": True}, ValueError),
        ({"shuffle": True, "sampler": [1]}, ValueError),
        ({"batch_sampler": [[1]], "batch_size": 2}, ValueError),
        ({"batch_sampler": [[1]], "shuffle": True}, ValueError),
        ({"batch_sampler": [[1]], "drop_last": True}, ValueError),
        ({"batch_size": None, "drop_last": True}, ValueError),
        ({"batch_size": 0}, ValueError),
        ({"multiprocessing_context": "fork"}, ValueError),
        ({"multiprocessing_context": "other", "num_workers": 1}, ValueError),
        ({"multiprocessing_context": 3, "num_workers": 1}, TypeError),
    ],
)
def test_bad_arguments(options, error):
    with pytest.raises(error):
        DataLoader(Squares(), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}])
def test_bad_arguments_for_iterables(options):
    with pytest.raises(ValueError, match="IterableDataset"):
        DataLoader(Count(3), **options)
    assert next(iter(DataLoader(Count(1), shuffle=False))).item() == 0


def test_attributes():
    loader = DataLoader(Squares(), batch_size=2, pin_memory=True)
    for name in ("batch_size", "dataset", "sampler", "batch_sampler", "drop_last"):
        with pytest.raises(ValueError, match=name):
            setattr(loader, name, None)
    assert isinstance(loader.sampler, SequentialSampler) and loader.pin_memory
    assert next(iter(loader))[1].tolist() == [0, 1]
    assert len(iter(loader)) == 12
    with pytest.raises(NotImplementedError, match="pickled"):
        import pickle

        pickle.dumps(iter(loader))
    assert DataLoader[int] and Dataset[int] and Sampler[int]


def test_multiprocessing_is_imported_only_for_workers():
    import subprocess
    import sys

    code = (
        "import sys, clew.utils.data as d; list(d.DataLoader([1, 2]));"
        "assert 'multiprocessing' not in sys.modules, 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Heavy(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return heavy()


def heavy():
    x = clew.nn.functional.conv2d(clew.ones(8, 8, 64, 64), clew.ones(8, 8, 3, 3)).sum()
    return (x + (clew.ones(600, 600) @ clew.ones(600, 600)).sum()).item()


def test_threads_of_the_parent_do_not_block_forked_processes():
    """Threads do not survive a fork: a child that waited for them would hang."""
    expected = heavy()
    loader = DataLoader(Heavy(), num_workers=1, timeout=60)
    assert [b.item() for b in loader] == pytest.approx([expected] * 2)
    process = multiprocessing.get_context("fork").Process(target=heavy)
    process.start()
    process.join(60)
    assert process.exitcode == 0


def test_two_loaders_at_once():
    a, b = iter(DataLoader(Squares(6), num_workers=1)), iter(DataLoader(Squares(6), num_workers=1))
    for i in range(6):
        assert next(a)[1].item() == next(b)[1].item() == i
    gc.collect()


def in_shared_memory(items):
    """As PyTorch Geometric collates within a worker: at once into memory that others may map."""
    first = items[0]
    room = first.untyped_storage()._new_shared(
        sum(x.numel() for x in items) * first.element_size(), device=first.device
    )
    out = first.new(room).resize_(len(items), *first.shape)
    assert out.is_shared() and get_worker_info() is not None
    return clew.stack(items, out=out)


def test_workers_may_collate_into_shared_memory():
    rows = [clew.full((3,), float(i)) for i in range(6)]
    loader = DataLoader(rows, batch_size=2, num_workers=2, collate_fn=in_shared_memory)
    got = list(loader)
    assert [b.tolist() for b in got] == [[[i] * 3, [i + 1] * 3] for i in (0, 2, 4)]
    got[0].zero_()  # each batch has its own memory
    assert got[1].sum().item() == 15


def test_passes_over_loaders_of_other_classes():
    """As fastai's, which give PyTorch's iterators what these read off a loader."""

    class Other:
        _IterableDataset_len_called, _auto_collation = None, False
        drop_last, in_order, generator, prefetch_factor = False, True, None, 2
        pin_memory, pin_memory_device, timeout = False, "", 0
        persistent_workers, worker_init_fn, multiprocessing_context = False, None, None
        _dataset_kind = loaders._DatasetKind.Iterable

        def __init__(self, batches, num_workers):
            self.batches, self.num_workers = batches, num_workers

        dataset = property(lambda self: self.batches)
        collate_fn = staticmethod(lambda x: x)
        _index_sampler = property(lambda self: iter(int, 1))

    kinds = loaders._SingleProcessDataLoaderIter, loaders._MultiProcessingDataLoaderIter
    for workers, kind in enumerate(kinds):
        got = list(kind(Other([clew.ones(2), clew.zeros(1)], workers)))
        assert [b.tolist() for b in got] == [[1, 1], [0]]


def test_workers_that_cannot_be_started_say_why():
    class Local(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return i

    loader = DataLoader(Local(), num_workers=1, multiprocessing_context="spawn")
    with (
        pytest.warns(UserWarning, match="started by 'spawn', which needs a dataset"),
        pytest.raises((AttributeError, pickle.PicklingError)),
    ):
        next(iter(loader))
