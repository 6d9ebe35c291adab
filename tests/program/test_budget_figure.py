"""clew.memory_budget: the figure that a refused call names leads to a budget that is enough."""

from __future__ import annotations

import gc
import re

import pytest
from budgeted_steps import live, peak_of

import clew
from clew import nn
from clew.nn import functional as F

pytestmark = pytest.mark.usefixtures("young_heap")  # they collect garbage hundreds of times


def perceptron():
    model = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(128, 128), nn.GELU())])
    x = clew.randn(512, 128)
    return clew.optim.Adam(model.parameters()), lambda: model(x).square().mean()


def convolutions():
    def block(c):
        return [nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(inplace=True)]

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), *block(16), *block(16), nn.MaxPool2d(2), *block(16),
        *block(16), nn.Flatten(), nn.Linear(16 * 64, 10),
    )  # fmt: skip
    x, y = clew.randn(16, 3, 16, 16), clew.randint(0, 10, (16,))
    optimizer = clew.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    return optimizer, lambda: F.cross_entropy(model(x), y)


def transformer():
    layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Embedding(200, 64), nn.TransformerEncoder(layer, 4))
    head, x = nn.Linear(64, 200), clew.randint(0, 200, (4, 64))
    optimizer = clew.optim.AdamW([*model.parameters(), *head.parameters()])
    return optimizer, lambda: F.cross_entropy(head(model(x)).flatten(0, 1), x.flatten())


def lstm_by_hand():
    cell, x = nn.Linear(96, 4 * 48), clew.randn(100, 16, 48)

    def loss():
        h = c = clew.zeros(16, 48)
        for t in range(100):
            i, f, g, o = cell(clew.cat([x[t], h], 1)).chunk(4, 1)
            c = clew.sigmoid(f) * c + clew.sigmoid(i) * clew.tanh(g)
            h = clew.sigmoid(o) * clew.tanh(c)
        return h.sum()

    return clew.optim.Adam(cell.parameters()), loss


def chain():
    w, x = nn.Parameter(clew.randn(64, 64) * 0.1), clew.randn(64, 64)

    def loss():
        h = x
        for _ in range(60):
            h = clew.tanh(h @ w)
        return h.sum()

    return clew.optim.Adam([w]), loss


def wide():
    model, x = nn.Sequential(nn.Linear(1000, 1000), nn.Tanh(), nn.Linear(1000, 10)), None
    x = clew.randn(16, 1000)
    return clew.optim.Adam(model.parameters()), lambda: model(x).square().mean()


def told_by(make, limit):
    """What a new model's first two steps are told; None where the budget is enough."""
    clew.manual_seed(0)
    optimizer, loss = make()
    try:
        for _ in range(2):
            with clew.memory_budget(limit):
                optimizer.zero_grad()
                loss().backward()
                optimizer.step()
    except clew.OutOfMemoryError as error:
        return str(error)
    finally:
        del optimizer, loss
        gc.collect()


@pytest.mark.parametrize("start", [0.2, 0.7, 0.95])
@pytest.mark.parametrize("make", [perceptron, convolutions, transformer, lstm_by_hand, chain, wide])
def test_the_figure_is_enough_after_at_most_three_rounds(make, start):
    floor = live()
    kept = make()
    low, high = live(), 40 * (live() - floor) + live()
    del kept
    while high - low > high // 200:
        middle = (low + high) // 2
        if told_by(make, middle) is None:
            high = middle
        else:
            low = middle
    clew.memory_budget._enough.clear()
    limit, rounds = int(start * high), []
    while text := told_by(make, limit):
        found = re.search(r"a budget of (?:about )?(\d+) bytes", text)
        assert found, text
        assert int(found[1]) > limit
        limit = int(found[1])
        rounds.append(limit / high)
    assert len(rounds) <= 3 and limit <= 1.15 * high, rounds


def test_what_refused_steps_left_in_cycles_is_not_counted_again():
    class Holder:
        pass

    x = clew.randn(512, 64)

    def step():
        h = x
        for layer in model:
            holder = Holder()
            h = holder.h = layer(h)
            holder.itself = holder  # so that only the garbage collector frees h
        h.sum().backward()

    def told(limit):
        try:
            with clew.memory_budget(limit):
                step()
        except clew.OutOfMemoryError as error:
            return str(error)
        finally:
            model.zero_grad()

    model = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(64, 64), nn.Tanh())])
    _, floor, peak = peak_of(step)
    model.zero_grad()
    gc.collect()
    gc.disable()
    try:
        limit, rounds = int(floor + 0.3 * (peak - floor)), 0
        while text := told(limit):
            limit = int(re.search(r"a budget of (?:about )?(\d+) bytes", text)[1])
            rounds += 1
            assert rounds < 6, (rounds, limit, peak)
    finally:
        gc.enable()
    assert limit < 1.1 * peak, (limit, peak)


def test_only_the_bytes_at_the_refused_call_are_called_a_lower_bound():
    """Of one wide layer the room for gradients is guessed too large; the plain peak is enough."""
    model = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
    x = clew.randn(512, 64)
    _, floor, peak = peak_of(lambda: model(x).square().mean().backward())
    model.zero_grad()
    gc.collect()  # what other tests left may go meanwhile
    peak += live() - floor
    floor = live()

    def told(share):
        with pytest.raises(clew.OutOfMemoryError) as info:
            with clew.memory_budget(int(floor + share * (peak - floor))):
                model(x).square().mean().backward()
        model.zero_grad()
        text = str(info.value)
        least = re.search(r"about (\d+) bytes should .* now: (\d+) here", text)
        assert least and int(least[2]) <= peak and "at least" not in text, text
        return text

    # With more room less would have had to be made again.
    text = told(0.6)
    assert "in the backward of" in text and "less can never do" not in text, text
    text = told(0.8)
    assert "in the backward of" in text, text
    if "less can never do" in text:  # a claim that holds
        least = int(re.search(r"now: (\d+) here", text)[1])
        told((least - 1 - floor) / (peak - floor))
    with pytest.raises(clew.OutOfMemoryError, match=r"now: \d+ here \(less can never do\), "):
        with clew.memory_budget(live() + 1000):
            model(x)


def test_a_figure_that_was_enough_is_called_so():
    floor = live()
    optimizer, loss = perceptron()
    needs = live() - floor

    def step(limit):
        with clew.memory_budget(limit):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()

    enough = floor + 4 * needs + 1_000_000
    for _ in range(3):
        step(enough)
    with pytest.raises(clew.OutOfMemoryError, match=f"{enough} (bytes )?was enough in an"):
        step(floor + 4 * needs - 600_000)


def test_the_figure_counts_gradients_and_state_to_come():
    """Beside those of whatever else is alive in this process."""

    def to_come():
        with pytest.raises(clew.OutOfMemoryError) as info, clew.memory_budget(live() + 1000):
            clew.ones(12_345)  # as large as no parameter
        found = (re.search(rf"(\d+) {what}", str(info.value)) for what in ("of gr", "of the opt"))
        return [int(m[1]) if m else 0 for m in found]

    gc.collect()
    before = to_come()
    optimizer, _ = wide()
    weights = sum(4 * p.numel() for group in optimizer.param_groups for p in group["params"])
    gc.collect()
    assert [b - a for a, b in zip(before, to_come())] == [weights, 2 * weights]


def test_keys_that_are_tensors_are_not_shown_in_what_holds_memory():
    """A tensor's text takes memory, of which there is none."""
    gc.collect()  # graphs in cycles that other tests left would be listed too
    w = clew.ones(1000, 1000, requires_grad=True)  # larger than what they hold on to
    moments = {w: {"moment": clew.ones(1000, 1000)}}
    with pytest.raises(clew.OutOfMemoryError, match=r"moments\[<Tensor>\]\['moment'\]"):
        with clew.memory_budget(live() + 2):
            w + 1
    del moments


def test_what_has_no_bytes_is_never_refused():
    gc.collect()
    held = clew.ones(1000)
    with clew.memory_budget(live() - 1000):
        assert clew.empty(0).numel() == clew.ones(3, 0).numel() == 0
        assert held.untyped_storage().nbytes() == 4000


def test_a_refusal_among_calls_that_are_run_as_batches_tells_all():
    """What waits is left alone while tensors are looked at: it could not be computed."""
    lin, xs = nn.Linear(64, 64), [clew.randn(1, 64) for _ in range(32)]

    def step():
        with clew.autobatch():
            total = 0
            for x in xs:
                for _ in range(4):
                    x = clew.tanh(lin(x))
                total = total + x.sum()
            total.backward()

    with pytest.raises(clew.OutOfMemoryError) as info, clew.memory_budget(live() + 20_000):
        step()
    text = str(info.value)
    assert re.search(r"a budget of about \d+ bytes should be enough", text), text
    assert re.search(r"what holds memory now.*:\n +\S+ \w*B  \w", text), text  # one owner at least


class Lion(clew.optim.Optimizer):
    """One of the user's."""

    def __init__(self, params):
        super().__init__(params, {"lr": 1e-3})

    @clew.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["moment"] = clew.zeros_like(p)
                state["moment"].lerp_(p.grad, 0.1)
                p.sub_(state["moment"].sign(), alpha=group["lr"])


def test_what_an_unknown_optimizer_will_hold_is_said_to_be_unknown():
    w = nn.Parameter(clew.randn(64, 64))
    optimizer = Lion([w])

    def told():
        with pytest.raises(clew.OutOfMemoryError) as info, clew.memory_budget(live() + 1000):
            clew.ones(12_345)  # as large as no parameter
        return str(info.value)

    assert "(how much state Lion has shows at its first step)" in told()
    w.grad = clew.ones(64, 64)
    optimizer.step()
    assert "Lion" not in told().split("what holds memory")[0]
