"""clew.memory_budget: the same bits in fewer bytes."""

import gc
import os
import threading

import numpy as np
import pytest
from budgeted_steps import check, deep, live, peak_of, same, stepping

import clew
from clew import nn
from clew.nn import functional as F
from clew.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("young_heap")  # they collect garbage hundreds of times


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


def test_checkpoint_within_checkpoint():
    """What the inner second run keeps is not saved for the outer one."""
    model = deep(12)

    def step():
        model.zero_grad()
        h = checkpoint(
            lambda z: checkpoint(model[6:12], model[:6](z), use_reentrant=False),
            x, use_reentrant=False,
        )  # fmt: skip
        h = checkpoint(lambda z: checkpoint(model[12:18], z, use_reentrant=False), h,
                       use_reentrant=False)  # fmt: skip
        model[18:](h).sum().backward()
        return [p.grad for p in model.parameters()]

    x = clew.randn(256, 64)
    check(step, 0.9, needs=False)
    check(step, 0.75, needs=False)


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
