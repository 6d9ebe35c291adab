"""Datasets, samplers and collation."""

import collections

import numpy as np
import pytest
from small_datasets import Count, Squares, seeded

import clew
from clew.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    Dataset,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)


def test_tensor_dataset():
    d = TensorDataset(clew.arange(4), clew.arange(8).view(4, 2))
    assert len(d) == 4 and d[1][1].tolist() == [2, 3] and d[-1][0].item() == 3
    assert d[1:3][0].tolist() == [1, 2]
    with pytest.raises(AssertionError, match="first dimension"):
        TensorDataset(clew.zeros(2), clew.zeros(3))


def test_concat_dataset():
    d = Squares(3) + Squares(2)
    assert isinstance(d, ConcatDataset) and len(d) == 5
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert d.cummulative_sizes == d.cumulative_sizes
    assert [d[i][1] for i in range(5)] == [0, 1, 2, 0, 1]
    assert d[-1][1] == 1 and d[-5][1] == 0
    with pytest.raises(ValueError, match="-5; got -6"):
        d[-6]
    with pytest.raises(IndexError):
        d[5]
    with pytest.raises(AssertionError, match="empty"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="ChainDataset"):
        ConcatDataset([Count(1)])


def test_chain_dataset():
    d = Count(2) + Count(3, length=3)
    assert isinstance(d, ChainDataset) and list(d) == [0, 1, 0, 1, 2]
    assert len(ChainDataset([Count(1, length=1), Count(3, length=3)])) == 4
    with pytest.raises(AssertionError, match="IterableDataset"):
        list(ChainDataset([Squares()]))


def test_stack_dataset():
    d = StackDataset(Squares(3), [5, 6, 7])
    assert d[2][1] == 7 and len(d) == 3
    assert [x[1] for x in d.__getitems__([0, 2])] == [5, 7]
    named = StackDataset(a=[1, 2], b=Subset([7, 8, 9], [2, 0]))
    assert named[0] == {"a": 1, "b": 9}
    assert named.__getitems__([1, 0]) == [{"a": 2, "b": 7}, {"a": 1, "b": 9}]
    for args, kwargs in (((), {}), (([1],), {"a": [1]}), (([1], [1, 2]), {})):
        with pytest.raises(ValueError, match="StackDataset"):
            StackDataset(*args, **kwargs)


def test_subset():
    s = Subset(TensorDataset(clew.arange(5)), [4, 2, 0])
    assert len(s) == 3 and s[1][0].item() == 2
    assert s[[0, 2]][0].tolist() == [4, 0]
    assert [x[0].item() for x in s.__getitems__([2, 1])] == [0, 2]

    class Whole(Dataset):
        def __getitems__(self, keys):
            return keys[:-1]

    with pytest.raises(ValueError, match="2 samples; got 1"):
        Subset(Whole(), [1, 2]).__getitems__([0, 1])


def test_random_split():
    parts = random_split(range(10), [3, 7], generator=seeded(0))
    assert [len(p) for p in parts] == [3, 7]
    assert sorted(parts[0].indices + parts[1].indices) == list(range(10))
    again = random_split(range(10), [0.3, 0.7], generator=seeded(0))
    assert [p.indices for p in again] == [p.indices for p in parts]
    assert [len(p) for p in random_split(range(10), [1 / 3] * 3)] == [4, 3, 3]
    with pytest.warns(UserWarning, match="no samples"):
        random_split(range(2), [0.9, 0.05, 0.05])
    for lengths in ([1, 2], [0.5, 0.6], [1.0, 1e-10]):
        with pytest.raises(ValueError, match="add up"):
            random_split(range(10), lengths)
    with pytest.raises(ValueError, match="between 0 and 1"):
        random_split(range(10), [1.5, -0.5])


def test_missing_methods():
    with pytest.raises(NotImplementedError):
        Dataset()[0]
    with pytest.raises(NotImplementedError):
        iter(Sampler())


# Samplers. The orders for given seeds are those of PyTorch 2.13.


def test_random_sampler_orders():
    assert list(RandomSampler(range(10), generator=seeded(0))) == [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]
    clew.manual_seed(0)
    assert list(RandomSampler(range(10))) == RANDOM_SAMPLER_SEED_0
    assert list(RandomSampler(range(5), True, 8, seeded(1))) == REPLACEMENT_SEED_1
    many = list(RandomSampler(range(5), num_samples=13, generator=seeded(2)))
    assert many == THIRTEEN_SEED_2


RANDOM_SAMPLER_SEED_0 = [6, 9, 0, 7, 3, 5, 4, 2, 1, 8]
REPLACEMENT_SEED_1 = [0, 4, 4, 3, 3, 3, 1, 1]
THIRTEEN_SEED_2 = [3, 4, 1, 0, 2, 3, 4, 2, 1, 0, 0, 4, 2]


def test_random_sampler():
    s = RandomSampler(range(100), replacement=True, num_samples=70)
    assert len(s) == 70 and len(list(s)) == 70 and set(s) <= set(range(100))
    s = RandomSampler(range(4), num_samples=10)
    drawn = list(s)
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3] and len(drawn) == 10
    for options in ({"num_samples": 0}, {"num_samples": -1}, {"num_samples": 1.5}):
        with pytest.raises(ValueError, match="num_samples"):
            RandomSampler(range(3), **options)
    with pytest.raises(ValueError, match="num_samples"):
        RandomSampler([])
    with pytest.raises(TypeError, match="replacement"):
        RandomSampler(range(3), replacement=1)


def test_a_sampler_without_an_end_begins_at_once():
    """Programs ask for 10^10 draws and mean: without an end."""
    import tracemalloc

    endless = RandomSampler(range(10), replacement=True, num_samples=10**7, generator=seeded(1))
    tracemalloc.start()
    first = next(iter(endless))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 <= first < 10
    assert most < 100_000  # one piece of the draws; a list of all pieces takes 2.5 MB


def test_other_samplers():
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    assert list(SubsetRandomSampler([7, 8, 9], seeded(3))) == [8, 7, 9]
    weighted = WeightedRandomSampler([0, 1, 3, 0], 4000, generator=seeded(0))
    counts = collections.Counter(weighted)
    assert set(counts) == {1, 2} and 2.4 < counts[2] / counts[1] < 3.7 and len(weighted) == 4000
    assert sorted(WeightedRandomSampler([0.2, 1, 3], 3, replacement=False)) == [0, 1, 2]
    for args in (([1], 0), ([1], True), ([[1, 2]], 1), ([1], 1, 3)):
        with pytest.raises(ValueError, match="WeightedRandomSampler"):
            WeightedRandomSampler(*args)


def test_batch_sampler():
    assert list(BatchSampler(iter(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(BatchSampler(range(5), 2, d)) for d in (False, True)] == [3, 2]
    for args in ((0, False), (1.5, False), (True, False), (2, 1)):
        with pytest.raises(ValueError, match="BatchSampler"):
            BatchSampler(range(5), *args)


def test_distributed_sampler():
    shares = [list(DistributedSampler(range(10), 3, r)) for r in range(3)]
    assert [len(s) for s in shares] == [4, 4, 4]
    assert {i for share in shares for i in share} == set(range(10))
    dropped = [list(DistributedSampler(range(10), 3, r, drop_last=True)) for r in range(3)]
    assert len({i for share in dropped for i in share}) == 9
    s = DistributedSampler(range(10), 2, 0, seed=5)
    first = list(s)
    assert first == list(s)
    s.set_epoch(1)
    assert first != list(s) and len(s) == 5
    assert list(DistributedSampler(range(10), 2, 0, seed=6)) == list(s)
    assert list(DistributedSampler(range(2), 5, 4, shuffle=False)) == [0]
    with pytest.raises(ValueError, match="process group has not been initialized"):
        DistributedSampler(range(3))
    with pytest.raises(ValueError, match="rank"):
        DistributedSampler(range(3), 2, 2)


def test_distributed_sampler_asks_the_process_group(monkeypatch):
    monkeypatch.setattr(clew.distributed, "get_world_size", lambda: 3)
    monkeypatch.setattr(clew.distributed, "get_rank", lambda: 1)
    s = DistributedSampler(range(9), shuffle=False)
    assert (s.num_replicas, s.rank, list(s)) == (3, 1, [1, 4, 7])
    assert list(DistributedSampler(range(9), num_replicas=3, rank=2, shuffle=False)) == [2, 5, 8]
    assert list(DistributedSampler(range(9), rank=0, shuffle=False)) == [0, 3, 6]


# Collation

Point = collections.namedtuple("Point", "x y")


def test_collate():
    batch = [
        {"t": clew.tensor([i]), "n": np.array([i, i]), "i": i, "f": i / 2, "s": str(i),
         "b": bytes([i]), "tuple": (i, "a"), "list": [i, 2.5], "p": Point(i, -i),
         "u": np.float32(i), "v": np.int64(i), "flag": bool(i)}
        for i in range(2)
    ]  # fmt: skip
    out = default_collate(batch)
    assert out["t"].tolist() == [[0], [1]] and out["n"].tolist() == [[0, 0], [1, 1]]
    assert out["i"].dtype == clew.int64 and out["f"].dtype == clew.float64
    assert out["s"] == ["0", "1"] and out["b"] == [b"\0", b"\1"]
    assert isinstance(out["tuple"], list) and out["tuple"][1] == ("a", "a")
    assert out["list"][0].tolist() == [0, 1]
    assert isinstance(out["p"], Point) and out["p"].y.tolist() == [0, -1]
    assert out["u"].dtype == clew.float32 and out["v"].dtype == clew.int64
    assert out["flag"].dtype == clew.bool
    ordered = default_collate([collections.OrderedDict(a=1), collections.OrderedDict(a=2)])
    assert type(ordered) is collections.OrderedDict
    d = collections.defaultdict(list, a=1)
    assert default_collate([d, d]).default_factory is list


def test_collate_errors():
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([[1], [1, 2]])
    for samples in (
        [clew.ones(2), clew.ones(2), clew.ones(3)],
        [np.ones(2), np.ones(2), np.ones(3)],
    ):
        with pytest.raises(
            RuntimeError, match=r"\[2\] at entry 0 and \[3\] at entry 2.*collate_fn"
        ):
            default_collate(samples)
    for bad in ([None], [object()], [np.array(["a"])], [1 + 2j]):
        with pytest.raises(TypeError, match="default_collate"):
            default_collate(bad)
    with pytest.raises(RuntimeError, match="stack"):
        default_collate([clew.zeros(2), clew.zeros(3)])


def test_convert():
    out = default_convert({"a": np.arange(2), "b": [1, "x"], "c": Point(np.float32(1), 2)})
    assert out["a"].tolist() == [0, 1] and out["b"] == [1, "x"] and isinstance(out["c"], Point)
    assert out["c"].x.item() == 1
    words = np.array(["a"])
    assert default_convert(words) is words
    assert default_convert((np.arange(1),))[0].tolist() == [0]
