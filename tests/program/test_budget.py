"""clew.memory_budget: the same bits in fewer bytes."""

import asyncio
import gc
import os
import threading

import numpy as np
import pytest

import clew
from clew import nn
from clew.nn import functional as F
from clew.utils.checkpoint import checkpoint


def live():
    gc.collect()
    return clew._C._memory_stats()["live_bytes"]


def peak_of(step):
    """What the step gives, the bytes that were there before, and the most there were."""
    gc.collect()
    floor = clew._C._memory_stats()["live_bytes"]
    with clew.memory_budget(None) as budget:
        result = step()
    return result, floor, budget.report().peak


def same(a, b):
    if isinstance(a, clew.Tensor):
        return bool(np.array_equal(a.detach().numpy(), b.detach().numpy(), equal_nan=True))
    return all(same(x, y) for x, y in zip(a, b, strict=True))


def check(step, share=0.5, needs=True):
    """The step in a share of what it takes beyond what was there before."""
    clew.manual_seed(1)
    plain, floor, peak = peak_of(step)
    plain = [t.detach().clone() for t in plain]
    gc.collect()
    limit = int(floor + sum(t.numel() * t.element_size() for t in plain) + share * (peak - floor))
    clew.manual_seed(1)
    with clew.memory_budget(limit) as budget:
        got = step()
    report = budget.report()
    assert same(plain, got)
    assert report.peak <= limit
    if needs:
        assert report.given_up > 0
        assert report.made_again > 0
    return report


def stepping(model, *inputs, loss=lambda y: y.square().sum()):
    def step():
        model.zero_grad()
        loss(model(*inputs)).backward()
        return [p.grad for p in model.parameters()]

    return step


def deep(layers=12, width=64, act=nn.Tanh):
    clew.manual_seed(0)
    return nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), act())])


def test_a_perceptron_in_half_the_bytes():
    check(stepping(deep(), clew.randn(512, 64)))


def test_a_smaller_share_never_takes_more():
    model, x = deep(24), clew.randn(512, 64)
    step = stepping(model, x)
    _, floor, peak = peak_of(step)
    peaks = []
    for share in (1.1, 0.9, 0.8, 0.7, 0.55):
        with clew.memory_budget(int(floor + share * (peak - floor))) as budget:
            step()
        peaks.append(budget.report().peak)
    assert peaks == sorted(peaks, reverse=True)


def test_convolutions_batch_norm_and_writes_in_place():
    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
            self.n, self.m = nn.BatchNorm2d(c), nn.BatchNorm2d(c)
            self.act = nn.ReLU(inplace=True)

        def forward(self, x):
            y = self.act(self.n(self.a(x)))
            y = self.m(self.b(y))
            y += x
            return self.act(y)

    clew.manual_seed(0)
    model = nn.Sequential(*[Block(8) for _ in range(6)])
    states = []

    def step():
        for m in model.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.reset_running_stats()
        found = stepping(model, x)()
        states.append([b.clone() for b in model.buffers()])
        return found

    x = clew.randn(4, 8, 16, 16)
    check(step, 0.6)
    assert same(*states)
    assert int(states[0][2]) == 1


def test_dropout_and_other_draws_are_repeated():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(10)])

        def forward(self, x):
            for layer in self.layers:
                x = F.dropout(clew.relu(layer(x)), 0.3)
                x = x * (1 + 0.1 * clew.randn_like(x)) + clew.bernoulli(clew.sigmoid(x))
            return x

    clew.manual_seed(0)
    model = Noisy()
    check(stepping(model, clew.randn(256, 64)), 0.5)
    # The source stands where it would without a budget.
    clew.manual_seed(3)
    stepping(model, clew.ones(256, 64))()
    want = clew.rand(3)
    clew.manual_seed(3)
    with clew.memory_budget(live() + 1_400_000) as budget:
        stepping(model, clew.ones(256, 64))()
    assert same(clew.rand(3), want)
    assert budget.report().made_again > 0


def test_a_generator_of_its_own_is_not_drawn_from_again():
    g = clew.Generator()
    w = clew.randn(64, 64, requires_grad=True)

    def step():
        g.manual_seed(5)
        x = clew.ones(256, 64)
        for _ in range(10):
            x = clew.tanh(x @ w)
            x = x * clew.bernoulli(x.detach().abs(), generator=g)
        (grad,) = clew.autograd.grad(x.sum(), [w])
        return [grad, clew.rand(4, generator=g)]

    check(step, 0.5)


def test_attention():
    clew.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, 3)
    check(stepping(model, clew.randn(8, 32, 32)), 0.6)


def test_an_lstm_by_hand():
    clew.manual_seed(0)
    cell = nn.Linear(48 + 48, 4 * 48)
    x = clew.randn(100, 16, 48)

    def step():
        cell.zero_grad()
        h = c = clew.zeros(16, 48)
        for t in range(100):
            i, f, g, o = cell(clew.cat([x[t], h], 1)).chunk(4, 1)
            c = clew.sigmoid(f) * c + clew.sigmoid(i) * clew.tanh(g)
            h = clew.sigmoid(o) * clew.tanh(c)
        h.sum().backward()
        return [p.grad for p in cell.parameters()]

    check(step, 0.3)


def test_recursion_over_trees():
    clew.manual_seed(0)
    compose, leaf = nn.Linear(128, 64), nn.Parameter(clew.randn(64))

    def run(tree):
        if not tree:
            return leaf.expand(32, 64) * 1.0
        return clew.tanh(compose(clew.cat([run(tree[0]), run(tree[1])], 1)))

    def grow(depth):
        return (grow(depth - 1), grow(depth - 2)) if depth > 1 else ()

    def step():
        compose.zero_grad()
        leaf.grad = None
        run(grow(11)).sum().backward()
        return [compose.weight.grad, leaf.grad]

    check(step, 0.6)


def test_views_and_indexing():
    w = clew.randn(64, 64, requires_grad=True)

    def step():
        x = clew.linspace(-1, 1, 256 * 64).view(256, 64)
        for k in range(10):
            y = (x @ w).view(16, 16, 64).transpose(0, 1)
            y = clew.softmax(y[:, ::2].unsqueeze(1).expand(-1, 2, -1, -1), -1)
            x = clew.cat([y.reshape(-1, 64), x[: 256 - y.numel() // 64]]) + k
            x = x.flip(0).roll(1, 1).contiguous()
        return clew.autograd.grad(x.sin().sum(), [w])

    check(step, 0.6)


def test_double_backward():
    w = clew.randn(48, 48, requires_grad=True)

    def step():
        x = clew.ones(128, 48) / 7
        for _ in range(8):
            x = clew.tanh(x @ w)
        (g,) = clew.autograd.grad(x.square().sum(), [w], create_graph=True)
        return [g, *clew.autograd.grad(g.square().sum(), [w])]

    check(step, 0.6)


def test_backward_twice_over_one_graph():
    w = clew.randn(48, 48, requires_grad=True)

    def step():
        x = clew.ones(128, 48) / 7
        for _ in range(12):
            x = clew.tanh(x @ w)
        first = clew.autograd.grad(x.sum(), [w], retain_graph=True)
        second = clew.autograd.grad(x.sum(), [w], retain_graph=True)
        third = clew.autograd.grad(x.square().sum(), [w])
        return [*first, *second, *third]

    check(step, 0.5)


def test_custom_functions_and_hooks():
    class Cube(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    seen = []
    model = deep(10)
    model[3].register_full_backward_hook(lambda m, gi, go: seen.append(float(go[0].sum())))

    def step():
        model.zero_grad()
        y = clew.tanh(Cube.apply(model(x)))
        y.register_hook(lambda g: g * 2)
        y.sum().backward()
        return [p.grad for p in model.parameters()]

    x = clew.randn(256, 64)
    check(step, 0.6)
    assert len(seen) == 2 and seen[0] == seen[1]


def test_checkpoint_inside():
    model = deep(12)
    halves = model[:4], model[4:]

    def step():
        model.zero_grad()
        h = checkpoint(halves[0], x, use_reentrant=False)
        halves[1](h).sum().backward()
        return [p.grad for p in model.parameters()]

    x = clew.randn(256, 64)
    check(step, 0.7)


def test_autocast():
    model = deep(12)

    def step():
        model.zero_grad()
        with clew.autocast("cpu", dtype=clew.bfloat16):
            y = model(x)
        y.float().sum().backward()
        return [p.grad for p in model.parameters()]

    x = clew.randn(512, 64)
    check(step, 0.5)


def test_saved_tensors_written_since_are_an_error_as_without():
    w = clew.randn(64, 64, requires_grad=True)
    with clew.memory_budget(live() + 200_000):
        a = clew.tanh(clew.ones(64, 64) @ w)
        b = a.exp()
        b.add_(1)
        with pytest.raises(RuntimeError, match="in place|modified"):
            b.sum().backward()


def test_contents_that_recipes_read_may_be_overwritten():
    """What was made from a buffer of the program is made again before the buffer changes."""
    w = clew.randn(64, 64, requires_grad=True)

    def step():
        buffer = clew.ones(256, 64)
        total = 0
        for k in range(8):
            buffer.mul_(0.9).add_(k)
            h = buffer * 0.1
            for _ in range(3):
                h = clew.tanh(h @ w)
            total = total + h.sum()
        return clew.autograd.grad(total, [w])

    check(step, 0.6)


def test_numpy_sees_and_changes_what_it_shares():
    w = clew.randn(64, 64, requires_grad=True)

    def step():
        x = clew.ones(256, 64)
        shared = x.numpy()
        total = 0
        for k in range(6):
            shared[...] = k
            h = x * 0.1
            for _ in range(4):
                h = clew.tanh(h @ w)
            total = total + h.sum()
        return clew.autograd.grad(total, [w])

    check(step, 0.7)


def test_blocks_whose_address_was_asked_for_are_like_others():
    """The mark of a storage that others may write goes with it."""
    lent = [clew.zeros(shape) for shape in ((64, 64), (64,), (512, 64)) for _ in range(30)]
    assert all(t.data_ptr() for t in lent)
    del lent
    report = check(stepping(deep(), clew.randn(512, 64)), 0.5)
    assert report.kept <= 3  # square and sum among them


def test_parameters_that_change_before_backward():
    model = deep(8)

    def step():
        clew.manual_seed(2)
        for p in model.parameters():
            with clew.no_grad():
                p.copy_(clew.randn(p.shape) * 0.1)
        model.zero_grad()
        y = model(x)
        kept = y.detach() * 1
        with clew.no_grad():
            model[0].bias.add_(1)  # not saved by anybody, but read by recipes
        y.sum().backward()
        return [*(p.grad for p in model.parameters()), kept]

    x = clew.randn(256, 64)
    check(step, 0.85)


def test_an_exception_in_the_middle_leaves_all_well():
    model = deep(10)
    x = clew.randn(512, 64)
    step = stepping(model, x)
    want, floor, peak = peak_of(step)
    want = [g.clone() for g in want]
    limit = int(floor + 0.6 * (peak - floor)) + sum(4 * g.numel() for g in want)
    with pytest.raises(ZeroDivisionError), clew.memory_budget(limit):
        model(x)
        raise ZeroDivisionError
    with clew.memory_budget(limit):
        got = step()
    assert same(want, got)
    gc.collect()
    assert clew._C._memory_stats()["live_bytes"] <= floor + 4 * sum(4 * g.numel() for g in want)


def test_backward_after_the_region():
    model = deep(12)
    x = clew.randn(512, 64)
    want, floor, peak = peak_of(stepping(model, x))
    want = [g.clone() for g in want]
    model.zero_grad()
    with clew.memory_budget(int(floor + 0.5 * (peak - floor))) as budget:
        loss = model(x).square().sum()
    assert budget.report().given_up
    loss.backward()
    assert same(want, [p.grad for p in model.parameters()])


def test_a_write_for_which_there_is_no_room_is_refused():
    """What was made of the old contents has to be made first; without room the write fails."""
    w = clew.ones((), requires_grad=True)
    x = clew.ones(250_000)
    with clew.memory_budget(live() + 3_300_000) as budget:
        y = (x + w).exp()
        total = y.sum()
        del y
        held = [clew.ones(250_000) for _ in range(3)]
        assert budget.report().given_up == 1
        with pytest.raises(clew.OutOfMemoryError, match="memory_budget"):
            x.add_(1)
        assert float(x.max()) == 1
        del held
        x.add_(1)
        assert budget.report().made_again > 0
        (grad,) = clew.autograd.grad(total, [w])
    np.testing.assert_allclose(float(grad), 250_000 * np.e**2, rtol=1e-5)


def test_a_child_has_no_budget_and_writes_to_no_file_of_its_parents(tmp_path):
    # Products of so many columns take longer than writing their results, on any disk.
    weight, x = clew.randn(2048, 2048) / 45, clew.randn(32, 2048, requires_grad=True)

    def loss_of(x):
        for _ in range(24):
            x = (x @ weight).tanh()
        return x.square().sum()

    loss_of(x).backward()
    want, x.grad = x.grad, None
    with clew.memory_budget(live() + 2_000_000, offload=tmp_path) as budget:
        loss = loss_of(x)
        assert budget.report().written > 0
        child = os.fork()
        if child == 0:
            status = 1
            try:
                held = [clew.full((300_000,), float(k)) for k in range(20)]
                loss.backward()
                status = 0 if len(held) == 20 and same([want], [x.grad]) else 2
            finally:
                os._exit(status)
        _, code = os.waitpid(child, 0)
        assert code == 0
        loss.backward()
    assert same([want], [x.grad])


def test_too_small_a_budget_says_what_would_do():
    model = deep(6)
    x = clew.randn(512, 64)
    gc.collect()
    floor = clew._C._memory_stats()["live_bytes"]
    with pytest.raises(clew.OutOfMemoryError, match="memory_budget: .* at least") as info:
        with clew.memory_budget(floor + 1000):
            model(x)
    assert "what holds memory now" in str(info.value)


def test_training_with_an_optimizer():
    def train(limit):
        clew.manual_seed(0)
        model = deep(8)
        optimizer = clew.optim.Adam(model.parameters(), 1e-2)
        x = clew.randn(512, 64)
        for _ in range(4):
            with clew.memory_budget(limit):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        return [p.detach().clone() for p in model.parameters()]

    floor = clew._C._memory_stats()["live_bytes"]
    assert same(train(None), train(floor + 2_000_000))


def test_a_fraction_of_the_first_round():
    model, x = deep(16), clew.randn(512, 64)
    reports = []
    for _ in range(3):
        with clew.memory_budget(0.9) as budget:
            stepping(model, x)()
        reports.append(budget.report())
    assert reports[0].limit is None
    assert reports[1].limit == int(0.9 * reports[0].peak)
    assert reports[2].given_up > 0
    assert all(r.peak <= r.limit for r in reports[1:])


@pytest.mark.parametrize("rows, most", [(64, 600), (4, 600), (512, 40)])
def test_a_round_that_takes_more_than_those_before(rows, most):
    """Those before needed no more than the limit, and hardly a call of theirs was noted."""
    w, x = clew.randn(64, 64, requires_grad=True), clew.randn(rows, 64)
    with clew.no_grad():
        w.mul_(0.1)

    def step(layers):
        w.grad = None
        h = x
        for _ in range(layers):
            h = clew.tanh(h @ w)
        h.sum().backward()
        return w.grad.clone()

    few = most * 2 // 3
    _, floor, peak = peak_of(lambda: step(few))
    want = step(most)
    limit, noted = peak + (peak - floor) // 50 + 50_000, []
    for layers in (few, few, few, most, most, few):
        gc.collect()  # what other tests left
        before = clew._C._budget_counts()[8]
        with clew.memory_budget(limit) as budget:
            got = step(layers)
        noted.append(clew._C._budget_counts()[8] - before)
        assert budget.report().peak <= limit
        if layers == most:
            assert same(got, want) and budget.report().given_up > 0
    assert max(noted[1:3]) < noted[0]


def test_a_decorator():
    model, x = deep(16), clew.randn(512, 64)
    _, floor, peak = peak_of(stepping(model, x))
    budget = clew.memory_budget(int(floor + 0.7 * (peak - floor)))
    step = budget(stepping(model, x))
    assert len(step()) == 32
    assert budget.report().given_up > 0


def test_as_a_decorator_of_what_runs_in_steps():
    x = clew.ones(300, 300)

    @clew.memory_budget("400 kB")
    def generator():
        yield (x * 2).sum().item()

    @clew.memory_budget("400 kB")
    async def coroutine():
        await asyncio.sleep(0)
        return (x * 2).sum().item()

    @clew.memory_budget("400 kB")
    async def both():
        yield (x * 2).sum().item()

    async def first():
        return await anext(both())

    for run in (lambda: next(generator()), lambda: asyncio.run(coroutine()), first):
        with pytest.raises(clew.OutOfMemoryError, match="400 kB|400000"):
            asyncio.run(run()) if run is first else run()


def test_a_fraction_of_the_first_round_of_a_coroutine():
    gc.collect()  # what another test left must not go between the rounds
    budget = clew.memory_budget(0.9)

    @budget
    async def round_of_training():
        return clew.ones(1000).sum().item()

    assert asyncio.run(round_of_training()) == 1000
    assert budget.report().limit is None
    with pytest.raises(clew.OutOfMemoryError):  # 0.9 of what the first round took
        asyncio.run(round_of_training())


def test_offload_to_a_directory(tmp_path):
    model, x = deep(12), clew.randn(1024, 64)
    step = stepping(model, x)
    want, floor, peak = peak_of(step)
    want = [g.clone() for g in want]
    limit = int(floor + 0.4 * (peak - floor)) + sum(4 * g.numel() for g in want)
    with clew.memory_budget(limit, offload=tmp_path) as budget:
        got = step()
    assert same(want, got)
    assert budget.report().peak <= limit
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_made_again_goes_to_the_directory(tmp_path):
    """Constants that only saved tensors hold: without a directory there is no room for them."""
    w = clew.ones((), requires_grad=True)

    def step():
        total = 0
        for k in range(20):
            shared = clew.from_numpy(np.full(50_000, k, np.float32))
            # Made of memory that NumPy shares, so that no recipe can be trusted.
            total = total + (w * (shared + 1)).sum()
        return clew.autograd.grad(total, [w])

    want, floor, _ = peak_of(step)
    with pytest.raises(clew.OutOfMemoryError), clew.memory_budget(floor + 1_500_000):
        step()
    with clew.memory_budget(floor + 1_500_000, offload=tmp_path) as budget:
        assert same(want, step())
    assert budget.report().written > 0


@pytest.mark.parametrize("bad", [0, -5, "-3 MB", "much", "", "5 XB", float("nan"), 1.5, "iB"])
def test_limits_that_are_none(bad):
    with pytest.raises(ValueError, match="memory_budget"):
        clew.memory_budget(bad)


def test_other_bad_arguments(tmp_path):
    for bad in (True, [], 1j):
        with pytest.raises(TypeError, match="memory_budget"):
            clew.memory_budget(bad)
    with pytest.raises(NotADirectoryError, match="memory_budget"):
        clew.memory_budget("1 MB", offload=tmp_path / "none")
    budget = clew.memory_budget("1 GB")
    with pytest.raises(RuntimeError, match="memory_budget"):
        budget.report()
    with budget, pytest.raises(RuntimeError, match="memory_budget"), budget:
        pass


@pytest.mark.parametrize(
    ("text", "value"), [("600 MB", 600_000_000), ("1.5GiB", 3 << 29), ("10k", 10_000), ("7", 7)]
)
def test_sizes_as_text(text, value):
    with pytest.MonkeyPatch.context() as patch:
        limits = []
        real = clew._C._begin_budget
        patch.setattr(
            clew._C, "_begin_budget", lambda n, *rest: (limits.append(n), real(1 << 40, *rest))[1]
        )
        with clew.memory_budget(text):
            pass
    assert limits == [value]


def test_the_least_of_nested_limits_holds():
    model, x = deep(16), clew.randn(512, 64)
    step = stepping(model, x)
    _, floor, peak = peak_of(step)
    inner = int(floor + 0.7 * (peak - floor))
    with clew.memory_budget(10 * peak) as outside:
        with clew.memory_budget(inner) as budget:
            step()
        assert budget.report().given_up > 0
        before = outside.report().given_up
        step()
        assert outside.report().given_up == before


def test_a_budget_that_is_never_reached_gives_nothing_up():
    model, x = deep(4), clew.randn(64, 64)
    for _ in range(3):
        with clew.memory_budget("10 GB") as budget:
            stepping(model, x)()
        assert budget.report().given_up == 0


def test_long_chains_are_freed_without_recursion():
    with clew.memory_budget(live() + 300_000_000):
        x = clew.ones(4096, requires_grad=True)
        for _ in range(20_000):
            x = x * 1.0001
        x.sum().backward()
        y = clew.ones(4096)
        for _ in range(40_000):
            y = y * 0.5 + 0.5
    assert float(y[0]) == 1


def test_two_threads_in_one_budget():
    results = {}

    def work(k):
        clew.manual_seed(0)
        model = deep(12)
        x = clew.ones(512, 64) * (k + 1)
        results[k] = [g.clone() for g in stepping(model, x)()]

    work(0)
    want = results.pop(0)
    model_bytes = 20_000_000
    floor = clew._C._memory_stats()["live_bytes"]
    errors = []

    def guarded():
        try:
            with clew.memory_budget(floor + model_bytes):
                for _ in range(5):
                    work(0)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert same(results[0], want)


def test_compiled_functions_inside():
    model = deep(12)
    x = clew.randn(512, 64)
    compiled = clew.compile(model)

    def step():
        model.zero_grad()
        compiled(x).square().sum().backward()
        return [p.grad for p in model.parameters()]

    check(step, 0.5)
