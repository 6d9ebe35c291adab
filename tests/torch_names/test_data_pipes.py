"""Data pipes: chains of datasets, with the orders that PyTorch 2.13 gives for the same seeds."""

import pickle
from operator import add

import pytest

import clew
from clew._torch import _more
from clew._torch.utils.data import graph, graph_settings
from clew._torch.utils.data.datapipes import iter as pipes
from clew._torch.utils.data.datapipes import map as maps
from clew.utils.data import DataLoader

IterDataPipe = _more.find("utils.data", "IterDataPipe")
functional_datapipe = _more.find("utils.data", "functional_datapipe")
Wrapper = pipes.IterableWrapper


def double(x):
    return 2 * x


def is_odd(x):
    return x % 2 == 1


def chain():
    return Wrapper(range(12)).shuffle().sharding_filter().map(double)


def test_orders_go_by_the_default_generator():
    clew.manual_seed(0)
    pipe = chain()
    assert list(pipe) == [6, 10, 0, 2, 18, 4, 16, 8, 20, 22, 14, 12]
    assert list(pipe) == [6, 8, 18, 14, 22, 20, 4, 12, 0, 10, 2, 16]
    small = Wrapper(range(30)).shuffle(buffer_size=3)
    got = list(small)
    assert sorted(got) == list(range(30)) != got
    assert all(item <= place + 2 for place, item in enumerate(got))  # as far as the buffer reaches
    clew.manual_seed(0)
    assert list(maps.SequenceWrapper(range(5)).shuffle()) != list(range(5))


@pytest.mark.parametrize(
    ("workers", "epochs"),
    [
        (
            0,
            [
                [[18, 4, 2], [14, 20, 12], [8, 16, 0], [6, 10, 22]],
                [[18, 22, 0], [14, 16, 2], [12, 8, 6], [4, 10, 20]],
            ],
        ),
        (
            2,
            [
                [[18, 2, 20], [4, 14, 12], [8, 0, 10], [16, 6, 22]],
                [[10, 20, 6], [14, 12, 8], [4, 2, 16], [0, 18, 22]],
            ],
        ),
    ],
)
def test_loaders_seed_and_share_them(workers, epochs):
    generator = clew.Generator().manual_seed(1)
    loader = DataLoader(chain(), batch_size=3, num_workers=workers, generator=generator)
    for want in epochs:
        assert [batch.tolist() for batch in loader] == want


def test_loaders_switch_shuffling():
    pipe = chain()
    assert [b.tolist() for b in DataLoader(pipe, batch_size=6, shuffle=False)] == [
        list(range(0, 12, 2)),
        list(range(12, 24, 2)),
    ]
    DataLoader(pipe, shuffle=True)
    assert list(pipe) != list(range(0, 24, 2))
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = DataLoader(Wrapper(range(20)), batch_size=20, shuffle=True)
    (batch,) = loader
    assert sorted(batch.tolist()) == list(range(20)) != batch.tolist()
    with pytest.raises(ValueError, match="must not persist"):
        DataLoader(pipe, num_workers=1, persistent_workers=True)


def test_steps():
    numbers = Wrapper(range(7))
    assert list(numbers.batch(3)) == [[0, 1, 2], [3, 4, 5], [6]] and len(numbers.batch(3)) == 3
    short = numbers.batch(3, drop_last=True)
    assert list(short.unbatch()) == list(range(6)) and len(short) == 2
    assert list(short.batch(2).unbatch(-1)) == list(range(6))
    assert list(numbers.batch(4, wrapper_class=sum)) == [6, 15]
    assert list(numbers.filter(is_odd)) == [1, 3, 5]
    pairs = Wrapper([(1, 2), (3, 4)])
    assert list(pairs.map(add, input_col=[0, 1])) == [(3,), (7,)]
    assert list(pairs.map(double, input_col=1)) == [(1, 4), (3, 8)]
    assert list(pairs.map(add, input_col=[0, 1], output_col=-1)) == [(1, 2, 3), (3, 4, 7)]
    assert list(Wrapper([{"a": 1}]).map(double, "a", "b")) == [{"a": 1, "b": 2}]
    assert list(pairs.filter(is_odd, input_col=0)) == [(1, 2), (3, 4)]
    a, b = Wrapper("abc"), Wrapper([1, 2])
    assert list(a.zip(b)) == [("a", 1), ("b", 2)] and len(a.zip(b)) == 2
    assert list(a.concat(b)) == ["a", "b", "c", 1, 2] and len(a.concat(b)) == 5
    assert list(a.mux(b)) == ["a", 1, "b", 2] and len(a.mux(b)) == 4
    assert [t.tolist() for t in Wrapper([[1, 2]]).collate()] == [[1, 2]]
    shares = numbers.sharding_filter()
    shares.apply_sharding(3, 1)
    assert list(shares) == [1, 4] and len(shares) == 2
    assert list(pipes.Sampler(numbers)) == list(range(7))


def test_pipes_by_key():
    pipe = maps.SequenceWrapper([5, 6, 7])
    assert pipe.map(double)[2] == 14 and len(pipe.map(double)) == 3
    assert pipe.batch(2)[1] == [7] and len(pipe.batch(2)) == 2
    assert pipe.zip(pipe)[0] == (5, 5) and pipe.concat(pipe)[4] == 6
    assert [b.tolist() for b in DataLoader(pipe, batch_size=2)] == [[5, 6], [7]]
    with pytest.raises(IndexError):
        pipe.batch(2)[2]


def test_files(tmp_path):
    for name in ("b.txt", "a.txt", "c.csv", "in/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    listed = pipes.FileLister(str(tmp_path), masks="*.txt")
    assert list(listed) == [str(tmp_path / n) for n in ("a.txt", "b.txt")]
    every = pipes.FileLister(str(tmp_path), masks=["*.txt", "*.csv"], recursive=True)
    texts = [text for _, text in every.open_files(mode="rt").read_from_stream()]
    assert texts == ["a.txt", "b.txt", "c.csv", "in/d.txt"]
    parts = [part for _, part in listed.open_files().read_from_stream(chunk=4)]
    assert parts == ["a.tx", "t", "b.tx", "t"]


def test_own_classes_become_methods():
    @functional_datapipe("triple_for_test")
    class Triple(IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for x in self.source:
                yield 3 * x

    try:
        assert list(Wrapper([1, 2]).triple_for_test().map(double)) == [6, 12]
        with pytest.raises(Exception, match="already taken"):
            functional_datapipe("triple_for_test")(Triple)
    finally:
        del IterDataPipe.functions["triple_for_test"]
    with pytest.raises(AttributeError, match="no attribute 'triple_for_test'"):
        Wrapper([1]).triple_for_test  # noqa: B018
    with pytest.raises(TypeError, match="only a class of data pipes"):
        functional_datapipe("x")(dict)
    again = pickle.loads(pickle.dumps(chain()))
    assert sorted(again) == list(range(0, 24, 2))


def test_chains_as_graphs():
    pipe = chain()
    found = graph_settings.get_all_graph_pipes(graph.traverse_dps(pipe))
    kinds = ["Mapper", "ShardingFilter", "Shuffler", "IterableWrapper"]
    assert [type(p).__name__ for p in found] == kinds and found[0] is pipe
    both = pipe.zip(Wrapper([1]))
    assert len(graph.traverse_dps(both)[id(both)][1]) == 2
    graph_settings.apply_sharding(pipe, 4, 3)
    graph_settings.apply_shuffle_settings(pipe, shuffle=False)
    assert list(pipe) == [6, 14, 22]
    with pytest.raises(RuntimeError, match="Expected `IterDataPipe`"):
        graph.traverse_dps([1])


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (lambda p: p.batch(0), AssertionError, "larger than 0"),
        (lambda p: p.shuffle(buffer_size=0), ValueError, "larger than 0"),
        (lambda p: list(p.filter(double)), ValueError, "Boolean output"),
        (lambda p: p.map(double, output_col=1), ValueError, "must be None"),
        (lambda p: list(p.unbatch()), IndexError, "exceeds the depth"),
        (lambda p: p.zip([1]), TypeError, "IterDataPipe"),
        (lambda p: p.sharding_filter().apply_sharding(2, 2), ValueError, "smaller than"),
    ],
)
def test_wrong_arguments(wrong, error, match):
    with pytest.raises(error, match=match):
        wrong(Wrapper(range(3)))
