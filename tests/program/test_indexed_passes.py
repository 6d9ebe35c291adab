"""Elements of rows by their index, and calls that a pass puts off: the bits they give alone."""

from __future__ import annotations

import pytest

import clew


def cross_entropy(x: clew.Tensor, labels: clew.Tensor) -> clew.Tensor:
    shifted = x - x.detach().amax(-1, keepdim=True)
    logs = shifted - clew.log(clew.exp(shifted).sum(-1, keepdim=True))
    return 0.5 * (-logs.gather(-1, labels)).mean()


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("shape", [(200, 500), (6, 40, 300)])
@pytest.mark.parametrize("threads", [1, 2])
def test_cross_entropy_by_hand_is_one_pass(shape, dtype, threads):
    count = clew.get_num_threads()
    clew.set_num_threads(threads)
    try:

        def step() -> list[clew.Tensor]:
            clew.manual_seed(1)
            x = clew.randn(*shape, dtype=dtype, requires_grad=True)
            labels = clew.randint(0, shape[-1], (*shape[:-1], 1))
            loss = cross_entropy(x, labels)
            loss.backward()
            return [loss, x.grad]

        wanted = step()
        with clew.deferred():
            got = step()
        assert all(clew.equal(a, b) for a, b in zip(wanted, got, strict=True))
        assert "in 1 fused passes" in str(clew.compiler.last_report())
    finally:
        clew.set_num_threads(count)


@pytest.mark.parametrize("bad", [-1, 500, 2**40])
def test_an_index_outside_of_its_row_is_refused_with_the_line(bad):
    x = clew.randn(200, 500)
    labels = clew.randint(0, 500, (200, 1))
    labels[17] = bad
    message = r"gather: index -?\d+ is out of bounds(.|\n)*# here"
    with pytest.raises(RuntimeError, match=message), clew.deferred():
        doubled = x * 2
        after = (x + 1).gather(1, labels) * 2  # here
    assert clew.equal(doubled, x * 2)
    with pytest.raises(RuntimeError, match=message):
        after.sum().item()


def test_what_is_put_off_may_be_read_and_written_around():
    def step() -> list[clew.Tensor]:
        clew.manual_seed(2)
        x = clew.randn(200, 500)
        losses = x.exp().sum(-1, keepdim=True).log()
        mean = losses.mean()
        scaled = mean * 2 + 1
        y = x - losses
        losses.mul_(3)  # which the mean has read
        return [mean, scaled, y * 2, y * scaled, losses, y + losses]

    wanted = step()
    with clew.deferred():
        got = step()
    assert all(clew.equal(a, b) for a, b in zip(wanted, got, strict=True))


def test_indices_and_sources_of_other_forms_are_placed_alike():
    def step() -> list[clew.Tensor]:
        clew.manual_seed(2)
        x = clew.randn(200, 500)
        at = clew.randint(0, 500, (200, 1))
        zeros = clew.zeros(()).expand(200, 500)
        ones = clew.full((1,), 1.5).expand(200, 500)
        values = clew.randn(200, 1)
        return [
            zeros.scatter_add(1, at, values) * x,
            ones.scatter_add(1, at, values) * x,
            ones.scatter_add(1, at, clew.ones(()).expand(200, 1)) * x,
            zeros.scatter_add(1, at.repeat(1, 3), clew.randn(200, 3)) * x,
            zeros.scatter_add(1, at[:32], values[:32]) * x,
            zeros.scatter_add(0, clew.randint(0, 200, (1, 500)), clew.randn(1, 500)) * x,
            zeros.scatter_add(1, at, (x * 2).sum(1, keepdim=True)) * x,
            (x * 2).gather(1, at.int()) + 1,
            (x * 2).gather(1, at[::2]) + 1,
            (x * 2).gather(-1, x.argmax(1, keepdim=True)) + 1,
            (x.to(clew.bfloat16) * 2).gather(-1, at) + 1,
        ]

    wanted = step()
    with clew.deferred():
        got = step()
    assert all(clew.equal(a, b) for a, b in zip(wanted, got, strict=True))


def test_writes_in_place_stay_apart():
    def step() -> clew.Tensor:
        clew.manual_seed(2)
        x = clew.randn(200, 500)
        at = clew.randint(0, 500, (200, 1))
        y = x * 2
        y.scatter_add_(1, at, clew.ones(200, 1))
        z = y + 1
        z.scatter_add_(1, at, y.gather(1, at))
        return z

    wanted = step()
    with clew.deferred():
        got = step()
    assert clew.equal(got, wanted)
