"""Random numbers: known streams, distributions, seeding, generators, in-place fills."""

import math
import threading
import time

import numpy as np
import pytest

import clew
from moments import N, check_moments

FLOATS = [clew.float16, clew.bfloat16, clew.float32, clew.float64]


def near(tensor, expected, tolerance=5e-5):
    got = np.asarray(tensor.tolist(), dtype=np.complex128)
    np.testing.assert_allclose(got, np.asarray(expected), rtol=tolerance, atol=tolerance)


# ---- streams: what a seed gives, as every PyTorch program expects it ----


def test_mt19937_words():
    """randint over 2**28 or more draws 64 bits: two words of the reference mt19937."""
    clew.manual_seed(5489)
    words = np.random.RandomState(5489).randint(0, 2**32, 8, dtype=np.uint32).astype(np.uint64)
    wide = (words[0::2] << np.uint64(32)) | words[1::2]
    got = clew.randint(0, 2**62, (4,))
    assert got.tolist() == [int(w) % 2**62 for w in wide]


def test_float32_uniform_is_24_bits_of_a_word():
    clew.manual_seed(1)
    words = np.random.RandomState(1).randint(0, 2**32, 3000, dtype=np.uint32)
    assert clew.rand(3000).tolist() == ((words & 0xFFFFFF) * 2.0**-24).tolist()


def test_float64_uniform_is_53_bits_of_two_words():
    clew.manual_seed(1)
    words = np.random.RandomState(1).randint(0, 2**32, 2000, dtype=np.uint32).astype(np.uint64)
    wide = (words[0::2] << np.uint64(32)) | words[1::2]
    expected = (wide & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53
    assert clew.rand(1000, dtype=clew.float64).tolist() == expected.tolist()


def test_known_numbers():
    clew.manual_seed(0)
    near(clew.rand(3), [0.4963, 0.7682, 0.0885])
    clew.manual_seed(0)
    near(clew.randn(5), [1.5410, -0.2934, -2.1788, 0.5684, -1.0845])
    clew.manual_seed(0)
    near(clew.randn(20)[:8], [-1.1258, -1.1524, -0.2506, -0.4339, 0.5988, -1.5551, -0.3414, 1.8530])
    clew.manual_seed(0)
    assert clew.randint(0, 10, (5,)).tolist() == [4, 9, 3, 0, 3]
    clew.manual_seed(0)
    assert clew.randperm(10).tolist() == [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]
    clew.manual_seed(0)
    assert clew.empty(12).bernoulli_(0.3).tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1]
    clew.manual_seed(0)
    near(clew.empty(3).exponential_(), [3.508326, 1.230385, 0.615044])
    clew.manual_seed(0)
    assert clew.empty(6).geometric_(0.3).tolist() == [1, 1, 3, 1, 2, 1]
    clew.manual_seed(0)
    near(clew.empty(3).cauchy_(), [10.59773, 0.764767, -0.128299])
    clew.manual_seed(0)
    assert clew.multinomial(clew.tensor([0.1, 0.2, 0.3, 0.4]), 3).tolist() == [2, 1, 3]
    clew.manual_seed(0)
    near(clew.rand(2, dtype=clew.complex64), [0.4963 + 0.7682j, 0.0885 + 0.1320j])


def test_second_normal_of_a_pair_waits():
    clew.manual_seed(0)
    first = clew.randn(1).tolist() + clew.randn(1).tolist()
    clew.manual_seed(0)
    assert first == clew.randn(2).tolist()


def test_filling_a_part_draws_what_a_whole_tensor_draws():
    clew.manual_seed(3)
    expected = clew.rand(4, 6).tolist()
    clew.manual_seed(3)
    assert clew.empty(6, 4).t().uniform_().shape == (4, 6)
    clew.manual_seed(3)
    holder = clew.zeros(4, 12)
    holder[:, ::2].uniform_()
    assert holder[:, ::2].tolist() == expected
    assert not np.any(holder[:, 1::2].tolist())


# ---- seeding and generators ----


def test_seed_restarts_the_stream():
    a = clew.manual_seed(7) and clew.randn(50)
    b = clew.manual_seed(7) and clew.randn(50)
    c = clew.manual_seed(8) and clew.randn(50)
    assert a.tolist() == b.tolist() != c.tolist()
    assert clew.initial_seed() == 8
    assert clew.seed() == clew.initial_seed()


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1, -1, -(2**63)])
def test_accepted_seeds(seed):
    clew.manual_seed(seed)
    assert clew.initial_seed() == seed % 2**64


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_refused_seeds(seed):
    with pytest.raises(ValueError, match="seed must be in"):
        clew.manual_seed(seed)


def test_state_round_trip_keeps_the_waiting_normal():
    clew.randn(3)
    state = clew.get_rng_state()
    assert state.dtype is clew.uint8
    expected = clew.randn(5), clew.rand(700)
    clew.set_rng_state(state)
    got = clew.randn(5), clew.rand(700)
    assert [t.tolist() for t in got] == [t.tolist() for t in expected]


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (clew.zeros(3, dtype=clew.uint8), RuntimeError),
        (clew.full((5056,), 255, dtype=clew.uint8), RuntimeError),
        (clew.zeros(5056), TypeError),
        ([1, 2], TypeError),
    ],
)
def test_bad_states(state, error):
    with pytest.raises(error, match="state"):
        clew.set_rng_state(state)


def test_own_generators_are_independent():
    g, h = clew.Generator(), clew.Generator("cpu")
    assert g.initial_seed() == h.initial_seed() == 67280421310721
    clew.manual_seed(0)
    expected = clew.rand(2).tolist()
    clew.manual_seed(0)
    clew.rand(9, generator=g)
    assert clew.rand(2).tolist() == expected
    clew.rand(9, generator=h)
    assert clew.rand(2, generator=g).tolist() == clew.rand(2, generator=h).tolist()
    assert g.manual_seed(4) is g
    twin = g.clone_state()
    assert clew.rand(3, generator=twin).tolist() == clew.rand(3, generator=g).tolist()
    assert g.device == clew.device("cpu")
    with pytest.raises(RuntimeError):
        clew.Generator("cuda")


def test_fork_rng():
    clew.manual_seed(0)
    with clew.random.fork_rng():
        inside = clew.rand(3)
    assert clew.rand(3).tolist() == inside.tolist()
    with clew.random.fork_rng(enabled=False):
        inside = clew.rand(3)
    assert clew.rand(3).tolist() != inside.tolist()
    with clew.random.fork_rng(device_type=None):
        clew.rand(1)
    with pytest.raises(RuntimeError), clew.random.fork_rng(devices=[0]):
        pass


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: clew.rand(20, generator=g),
        lambda g: clew.randn(20, generator=g),
        lambda g: clew.randint(9, (20,), generator=g),
        lambda g: clew.randperm(20, generator=g),
        lambda g: clew.empty(20).uniform_(generator=g),
        lambda g: clew.empty(20).normal_(generator=g),
        lambda g: clew.empty(20).random_(generator=g),
        lambda g: clew.empty(20).bernoulli_(generator=g),
        lambda g: clew.empty(20).exponential_(generator=g),
        lambda g: clew.empty(20).geometric_(0.1, generator=g),
        lambda g: clew.empty(20).cauchy_(generator=g),
        lambda g: clew.empty(20).log_normal_(generator=g),
        lambda g: clew.bernoulli(clew.full((20,), 0.5), generator=g),
        lambda g: clew.multinomial(clew.ones(20), 9, generator=g),
        lambda g: clew.poisson(clew.full((20,), 3.0), g),
        lambda g: clew.normal(0.0, 1.0, (20,), generator=g),
        lambda g: clew.normal(clew.zeros(20), clew.ones(20), generator=g),
    ],
)
def test_generator_argument(draw):
    clew.manual_seed(1)
    before = clew.get_rng_state().tolist()
    a = draw(clew.Generator().manual_seed(11))
    b = draw(clew.Generator().manual_seed(11))
    c = draw(clew.Generator().manual_seed(12))
    assert a.tolist() == b.tolist() != c.tolist()
    assert clew.get_rng_state().tolist() == before


# ---- distributions, against their moments; 5 standard errors of the mean ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(dtype):
    x = clew.empty(N, dtype=dtype).uniform_(-2, 3)
    check_moments(x, 0.5, 25 / 12)
    values = x.tolist()
    assert min(values) >= -2 and max(values) < 3


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal(dtype):
    check_moments(clew.empty(N, dtype=dtype).normal_(1, 2), 1, 4)
    check_moments(clew.empty(N, dtype=dtype)[::3].normal_(1, 2), 1, 4)


def test_normal_has_the_right_shape():
    x = np.sort(np.asarray(clew.randn(N).tolist()))
    cdf = np.asarray([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x])
    assert np.abs(cdf - (np.arange(N) + 0.5) / N).max() < 1.63 / math.sqrt(N)


def test_complex_normal():
    x = clew.randn(N, dtype=clew.complex64)
    check_moments(clew.view_as_real(x), 0, 0.5)


def test_other_distributions():
    check_moments(clew.empty(N).exponential_(2), 1 / 2, 1 / 4)
    check_moments(clew.empty(N).geometric_(0.25), 4, 12)
    check_moments(clew.empty(N).bernoulli_(0.3), 0.3, 0.21)
    check_moments(clew.empty(N, dtype=clew.int8).bernoulli_(0.3), 0.3, 0.21)
    check_moments(clew.empty(N).log_normal_(0, 0.25).log(), 0, 1 / 16)
    cauchy = np.arctan((np.asarray(clew.empty(N).cauchy_(1, 2).tolist()) - 1) / 2)
    check_moments(clew.from_numpy(cauchy), 0, math.pi**2 / 12)
    check_moments(clew.randint(-3, 5, (N,)), 0.5, (64 - 1) / 12)
    for rate in (0.5, 4.0, 9.9, 10.0, 40.0):
        check_moments(clew.poisson(clew.full((N,), rate)), rate, rate)


def test_multinomial_frequencies():
    w = clew.tensor([1.0, 0.0, 3.0, 4.0])
    with_replacement = clew.multinomial(w, N, replacement=True)
    share = np.bincount(np.asarray(with_replacement.tolist()), minlength=4) / N
    np.testing.assert_allclose(share, [1 / 8, 0, 3 / 8, 1 / 2], atol=0.015)
    first = clew.multinomial(w.expand(N, 4), 2)
    assert (first[:, 0] != first[:, 1]).all()
    share = np.bincount(np.asarray(first[:, 0].tolist()), minlength=4) / N
    np.testing.assert_allclose(share, [1 / 8, 0, 3 / 8, 1 / 2], atol=0.015)


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
@pytest.mark.parametrize("dtype", [clew.int64, clew.int32, clew.float32])
def test_randperm_is_a_permutation(n, dtype):
    p = clew.randperm(n, dtype=dtype)
    assert p.dtype is dtype
    assert sorted(p.tolist()) == list(range(n))


def test_random_covers_what_the_dtype_holds():
    for dtype, top in [
        (clew.uint8, 255),
        (clew.int8, 127),
        (clew.int16, 2**15 - 1),
        (clew.int32, 2**31 - 1),
        (clew.int64, 2**63 - 1),
        (clew.float32, 2**24),
        (clew.float16, 2**11),
        (clew.bfloat16, 2**8),
    ]:
        x = clew.empty(2000, dtype=dtype).random_()
        values = x.tolist()
        assert min(values) >= 0 and 0.98 * top < max(values) <= top
    assert set(clew.empty(100).random_(3).tolist()) == {0, 1, 2}
    assert set(clew.empty(100).random_(-1, 1).tolist()) == {-1, 0}
    assert set(clew.empty(99, dtype=clew.bool).random_().tolist()) == {False, True}


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: clew.ones(2).uniform_(2, 1), "from must not be above to"),
        (lambda: clew.ones(2).normal_(0, -1), "std must not be negative"),
        (lambda: clew.ones(2).bernoulli_(1.5), r"p must be in \[0, 1\]"),
        (lambda: clew.ones(2).bernoulli_(clew.tensor([0.5, 2.0])), r"must be in \[0, 1\]"),
        (lambda: clew.ones(2).geometric_(0), r"p must be in \(0, 1\)"),
        (lambda: clew.ones(2).exponential_(0), "lambd must be above 0"),
        (lambda: clew.ones(2).cauchy_(0, 0), "sigma must be above 0"),
        (lambda: clew.ones(2).log_normal_(0, 0), "std must be above 0"),
        (lambda: clew.ones(2).random_(3, 3), "low must be below high"),
        (lambda: clew.ones(2, dtype=clew.int8).random_(0, 129), "must fit into int8"),
        (lambda: clew.ones(2, dtype=clew.int64).normal_(), "floating point"),
        (lambda: clew.randint(5, 3, (2,)), "low must be below high"),
        (lambda: clew.randint(0, 300, (2,), dtype=clew.uint8), "must fit into uint8"),
        (lambda: clew.randperm(-1), "must not be negative"),
        (lambda: clew.randperm(300, dtype=clew.uint8), "too large for uint8"),
        (lambda: clew.rand(2, dtype=clew.int64), "floating point or complex"),
        (lambda: clew.randn(2, dtype=clew.bool), "floating point or complex"),
        (lambda: clew.normal(clew.zeros(2), -1.0), "std must not be negative"),
        (lambda: clew.ones(1).expand(3).uniform_(), "single memory location"),
    ],
)
def test_errors(call, match):
    with pytest.raises(RuntimeError, match=match):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: clew.rand(),
        lambda: clew.rand(2, generator=3),
        lambda: clew.rand("a"),
        lambda: clew.rand(2, 3, size=(2,)),
        lambda: clew.randint(2.5, (2,)),
        lambda: clew.randint(3, 4),
        lambda: clew.ones(2).uniform_("a"),
        lambda: clew.ones(2).uniform_(0, 1, 2),
        lambda: clew.ones(2).normal_(average=1),
        lambda: clew.normal(0.0, 1.0),
        lambda: clew.normal(clew.ones(2), 1.0, (2,)),
        lambda: clew.normal(clew.ones(2), dtype=clew.float64),
    ],
)
def test_wrong_arguments(call):
    with pytest.raises(TypeError):
        call()


# ---- in-place fills and the graph ----


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
def test_probabilities_get_a_gradient_of_zero(dtype):
    p = clew.tensor([1.0, 0.0, 1.0], dtype=dtype, requires_grad=True)
    w = clew.ones(2, 3, requires_grad=True)
    for drawn in (clew.zeros(2, 3).bernoulli_(p), (w * 2).bernoulli_(p)):
        assert drawn.requires_grad and drawn.tolist() == [[1, 0, 1]] * 2
        (drawn * 3).sum().backward()
    assert p.grad.tolist() == [0, 0, 0] and w.grad.tolist() == [[0] * 3] * 2
    assert not clew.zeros(3, dtype=clew.int64).bernoulli_(p).requires_grad
    with clew.no_grad():
        assert not clew.zeros(3).bernoulli_(p).requires_grad
    with pytest.raises(RuntimeError, match="leaf"):
        w.bernoulli_(p)


@pytest.mark.parametrize(
    "fill",
    [
        lambda t: t.uniform_(),
        lambda t: t.normal_(),
        lambda t: t.bernoulli_(0.5),
        lambda t: t.exponential_(),
        lambda t: t.random_(),
        lambda t: t.fill_(2),
        lambda t: t.zero_(),
    ],
)
def test_fills_return_self_count_a_version_and_cut_history(fill):
    x = clew.ones(3, requires_grad=True)
    y = x * 2
    version = y._version
    assert fill(y) is y
    assert y._version == version + 1
    (y * 3).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="leaf"):
        fill(x)
    with clew.no_grad():
        fill(x)


def test_fill_through_a_view_cuts_only_the_part():
    x = clew.ones(4, requires_grad=True)
    y = x * 2
    y[1:3].zero_()
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 0, 2]


def test_fill_with_a_tensor_is_differentiable():
    v = clew.tensor(2.0, requires_grad=True)
    x = clew.zeros(3).fill_(v)
    (x * clew.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert v.grad.item() == 6
    with pytest.raises(RuntimeError, match="0-dimension"):
        clew.zeros(3).fill_(clew.ones(2))
    with pytest.raises(RuntimeError, match="complex"):
        clew.zeros(3).fill_(1j)


def test_sampling_ops_have_zero_gradient():
    p = clew.full((3,), 0.5, requires_grad=True)
    clew.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0, 0, 0]
    mean, std = clew.zeros(3, requires_grad=True), clew.ones(3, requires_grad=True)
    clew.normal(mean, std).sum().backward()
    assert mean.grad.tolist() == std.grad.tolist() == [0, 0, 0]


def test_no_numbers_are_drawn_on_meta():
    before = clew.get_rng_state().tolist()
    x = clew.rand(3, device="meta")
    x.normal_()
    clew.randint(3, (2,), device="meta")
    clew.randperm(4, device="meta")
    clew.dropout(x, 0.5, True)
    assert clew.get_rng_state().tolist() == before


def test_states_have_pytorchs_layout():
    g = clew.Generator().manual_seed(7)
    clew.rand(5, generator=g)
    raw = g.get_state().numpy().tobytes()
    assert len(raw) == 5056
    seed, left, seeded, following = np.frombuffer(raw[:24], "<u8,<u4,<u4,<u8")[0]
    assert (seed, left, seeded, following) == (7, 620, 1, 5)
    words = np.random.RandomState(7).get_state()[1]  # NumPy's, before its first draw
    fresh = clew.Generator().manual_seed(7).get_state().numpy()
    np.testing.assert_array_equal(fresh[24 : 24 + 8 * 624].view("<u8"), words)
    broken = bytearray(raw)
    broken[8] = 0  # no word left
    with pytest.raises(RuntimeError, match="state"):
        g.set_state(clew.frombuffer(broken, dtype=clew.uint8))


def test_a_pending_normal_is_part_of_the_state():
    g = clew.Generator().manual_seed(1)
    clew.randn(3, generator=g)
    state = g.get_state()
    want = clew.randn(5, generator=g)
    assert clew.equal(clew.randn(5, generator=clew.Generator().set_state(state)), want)


def test_one_draw_with_replacement_is_pytorchs():
    """Categorical.sample draws so: PyTorch 2.13's numbers for the same seeds."""
    for seed, want in ((0, [0, 2, 3]), (1, [5, 0, 4]), (2, [1, 4, 4]), (3, [4, 0, 1])):
        clew.manual_seed(seed)
        p = clew.rand(3, 6)
        assert clew.multinomial(p, 1, replacement=True).flatten().tolist() == want


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.float16])
def test_draws_without_replacement_go_through_memory_in_order(dtype):
    """PyTorch 2.13's numbers, whose random numbers lie in memory as the weights do."""
    clew.manual_seed(3)
    p = clew.rand(4, 5).to(dtype)
    rows = [[2, 4, 1, 3, 0], [1, 4, 2, 3, 0], [1, 0, 3, 2, 4], [2, 0, 3, 4, 1]]
    columns = [[4, 2, 1, 3, 0], [4, 2, 3, 1, 0], [1, 0, 3, 2, 4], [2, 3, 4, 1, 0]]
    twice = clew.stack([p, p], 2)[..., 0]
    crossed = p.t().contiguous().t()
    for weights, want in ((p, rows), (crossed, columns), (twice, rows)):
        clew.manual_seed(0)
        assert clew.multinomial(weights, 5).tolist() == want
        clew.manual_seed(0)
        assert clew.multinomial(weights, 1).tolist() == [w[:1] for w in want]
    clew.manual_seed(0)
    again = clew.multinomial(p, 3, replacement=True)
    clew.manual_seed(0)
    assert clew.equal(clew.multinomial(crossed, 3, replacement=True), again)


def test_binomial_draws_inside_vmap():
    """PyTorch 2.13's numbers for the same seed."""
    x = clew.tensor([0.2, 0.4, 0.9])

    def draw(p):
        return clew.distributions.Binomial(3, p).sample()

    clew.manual_seed(0)
    assert clew.vmap(draw, randomness="different")(x).tolist() == [2.0, 3.0, 3.0]
    even = clew.full((50,), 0.5)
    same = clew.vmap(lambda p: clew.binomial(clew.tensor(9.0), p), randomness="same")(even)
    assert same.unique().numel() == 1
    with pytest.raises(RuntimeError, match="randomness error mode"):
        clew.vmap(draw)(x)
    with pytest.raises(RuntimeError, match=r"prob must be in \[0, 1\]"):
        clew.vmap(lambda p: clew.binomial(clew.tensor(9.0), p), randomness="different")(x + 0.5)


FILLS = {
    "rand": lambda n: clew.rand(n),
    "rand in double": lambda n: clew.rand(n, dtype=clew.float64),
    "randint": lambda n: clew.randint(-3, 997, (n,)),
    "randint of 64 bits": lambda n: clew.empty(n, dtype=clew.int64).random_(-(2**62), 2**62),
    "randint as float": lambda n: clew.randint(0, 10, (n,), dtype=clew.float32),
    "bernoulli as bool": lambda n: clew.empty(n, dtype=clew.bool).bernoulli_(0.3),
    "bernoulli as float": lambda n: clew.empty(n).bernoulli_(0.3),
    "dropout": lambda n: clew.nn.functional.dropout(clew.ones(n), 0.4),
    "exponential": lambda n: clew.empty(n).exponential_(),
}
NORMALS = {
    "randn": lambda n: clew.randn(n),
    "randn in double": lambda n: clew.randn(n, dtype=clew.float64),
    "randn in half": lambda n: clew.randn(n, dtype=clew.float16),
}


@pytest.mark.parametrize("fill", FILLS)
def test_a_long_fill_is_many_short_ones(fill):
    """Pieces of it are drawn by several threads, and begin anywhere in a block of 624 words."""
    sizes = [1, 622, 3, 311, 8192, 8191, 300, 20011]
    clew.manual_seed(5)
    whole = FILLS[fill](sum(sizes))
    after = clew.rand(3)
    clew.manual_seed(5)
    # Below 256 elements `exponential_` goes another way, to the same numbers.
    parts = clew.cat([FILLS[fill](n) for n in sizes])
    assert clew.equal(whole, parts)
    assert clew.equal(after, clew.rand(3))


@pytest.mark.parametrize("fill", FILLS | NORMALS)
@pytest.mark.parametrize("threads", [2, 5])
def test_the_thread_count_does_not_change_a_fill(fill, threads):
    make, before = (FILLS | NORMALS)[fill], clew.get_num_threads()
    try:
        clew.set_num_threads(1)
        clew.manual_seed(6)
        alone, state = make(100_007), clew.get_rng_state()
        clew.set_num_threads(threads)
        clew.manual_seed(6)
        assert clew.equal(alone, make(100_007))
        assert clew.equal(state, clew.get_rng_state())
    finally:
        clew.set_num_threads(before)


def test_integers_are_remainders_of_words():
    words = np.random.RandomState(7).randint(0, 2**32, 5000, dtype=np.uint32)
    for top in [1, 2, 3, 7, 1000, 2**27 + 1, 2**28 - 1]:
        clew.manual_seed(7)
        assert clew.randint(0, top, (5000,)).tolist() == (words % top).tolist()


def test_normal_into_a_tensor_draws_from_the_generator():
    made, out = clew.Generator().manual_seed(3), clew.empty(50)
    clew.normal(clew.zeros(50), 2.0, generator=made, out=out)
    assert out.equal(clew.normal(clew.zeros(50), 2.0, generator=clew.Generator().manual_seed(3)))


@pytest.mark.parametrize(
    ("dtype", "start", "stop"),
    [
        (clew.float16, 0, 70000),
        (clew.float16, -65504, 65504),
        (clew.float32, 0, 1e39),
        (clew.float32, -3e38, 3e38),
        (clew.bfloat16, float("-inf"), 0),
    ],
)
def test_uniform_numbers_fit_their_dtype(dtype, start, stop):
    with pytest.raises(RuntimeError, match="must not be above the largest"):
        clew.empty(2, dtype=dtype).uniform_(start, stop)
    top = clew.finfo(dtype).max
    assert clew.empty(5000, dtype=dtype).uniform_(0, top).isfinite().all()


def test_bernoulli_wants_chances_that_hold_numbers() -> None:
    chances = clew.ones(3, 4, device="meta")
    with pytest.raises(RuntimeError, match="bernoulli_: p must hold numbers"):
        clew.ones(3, 4).bernoulli_(chances)
    assert clew.ones(3, 4, device="meta").bernoulli_(chances).is_meta
    with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
        clew.ones(3, 4).bernoulli_(clew.ones(3, 4).to_sparse())


def test_bernoulli_of_batched_probabilities():
    p = clew.tensor([[0.0] * 4, [1.0] * 4])
    for randomness in ("same", "different"):
        draw = clew.func.vmap(lambda q: clew.zeros_like(q).bernoulli_(q), randomness=randomness)
        assert draw(p).tolist() == p.tolist()
    even = clew.full((1000,), 0.5)
    rows = clew.func.vmap(lambda q: clew.zeros_like(q).bernoulli_(even), randomness="different")(
        clew.zeros(2, 1000)
    )
    assert not clew.equal(rows[0], rows[1]) and 400 < rows[0].sum() < 600
    with pytest.raises(RuntimeError, match="shared by all samples"):
        clew.func.vmap(lambda q: clew.empty(4).bernoulli_(q), randomness="same")(p)


def test_probabilities_live_as_long_as_they_are_read():
    n, kept = 5_000_000, []
    for _ in range(3):
        p, x = clew.zeros(n), clew.empty(n)

        def other(p=p):
            time.sleep(0.004)
            p.data = clew.zeros(1)
            kept.append(clew.ones(n))

        thread = threading.Thread(target=other)
        thread.start()
        x.bernoulli_(p)
        thread.join()
        assert x.sum().item() == 0


def test_a_clone_of_a_generator_in_use():
    """It goes on at a place between two numbers that the generator draws."""
    g, drawn = clew.Generator().manual_seed(3), clew.empty(5_000_000)
    thread = threading.Thread(target=lambda: drawn.uniform_(generator=g))
    thread.start()
    clone = g.clone_state()
    thread.join()
    whole = np.concatenate([drawn.numpy(), clew.empty(16).uniform_(generator=g).numpy()])
    ours = clew.empty(16).uniform_(generator=clone).numpy()
    starts = np.flatnonzero(whole[:-15] == ours[0])
    assert any(np.array_equal(whole[k : k + 16], ours) for k in starts)


@pytest.mark.parametrize("seed", [1.9, "3", None, [1]])
def test_a_generators_seed_is_no_fraction_and_no_text(seed):
    with pytest.raises(TypeError, match="manual_seed: the seed must be an int; got"):
        clew.Generator().manual_seed(seed)
