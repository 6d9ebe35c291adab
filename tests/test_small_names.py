"""Switches with little to switch, and an optimizer on other parameters."""

from __future__ import annotations

import pytest

import clew


def test_modes():
    assert clew.get_deterministic_debug_mode() == 0
    try:
        for given, level in (("warn", 1), (2, 2), ("error", 2), (0, 0)):
            clew.set_deterministic_debug_mode(given)
            assert clew.get_deterministic_debug_mode() == level
            assert clew.is_deterministic_algorithms_warn_only_enabled() is (level == 1)
        clew.set_warn_always(True)
        assert clew.is_warn_always_enabled() is True
    finally:
        clew.set_deterministic_debug_mode(0)
        clew.set_warn_always(False)
    for bad, error in ((3, RuntimeError), ("loud", RuntimeError), (1.0, TypeError)):
        with pytest.raises(error, match="debug_mode"):
            clew.set_deterministic_debug_mode(bad)
    with clew.autograd.set_multithreading_enabled(False):
        x = clew.ones(1, requires_grad=True)
        (x * 2).backward()
    assert x.grad.item() == 2


def test_saved_tensors_may_be_written_to():
    x = clew.tensor([1.0, 2.0], requires_grad=True)
    y = x.clone()
    with clew.autograd.graph.allow_mutation_on_saved_tensors() as context:
        z = (y * y).sum()
        y.zero_()
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    context.clear()
    y = clew.tensor([3.0])
    w = clew.tensor([5.0], requires_grad=True)
    with clew.autograd.graph.allow_mutation_on_saved_tensors():
        z = w * y
        y.zero_()
    z.backward()
    assert w.grad.tolist() == [3.0]
    z = w * y
    y.fill_(1.0)
    with pytest.raises(RuntimeError, match="modified"):
        z.backward()


@pytest.mark.parametrize("kind", [clew.optim.Adam, clew.optim.LBFGS])
def test_an_optimizer_works_on_other_parameters_for_a_while(kind):
    def run(opt, w):
        def closure():
            w.grad = None
            loss = ((w - 3) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            opt.step(closure)

    own = clew.zeros(2, requires_grad=True)
    opt = kind([own], lr=0.1)
    run(opt, own)
    value, groups = own.detach().clone(), opt.param_groups
    other = own.detach().clone().requires_grad_()
    state = opt.state_dict()
    with clew.optim.swap_in_optimizer_params_and_state(opt, {"w": other}, state):
        assert opt.param_groups[0]["params"][0] is other
        run(opt, other)
    assert clew.equal(own, value) and opt.param_groups is groups
    assert (other.detach() - 3).abs().sum() < (value - 3).abs().sum()
    with pytest.raises(ValueError, match="parameters"):
        with clew.optim.swap_in_optimizer_params_and_state(opt, {}, state):
            pass


def test_the_queue_of_the_cpu():
    """Programs for any device ask its module for streams and events."""
    module = clew.cpu
    before, other = module.current_stream(), module.Stream()
    with module.stream(other):
        assert module.current_stream() is other
        with module.StreamContext(None):
            assert module.current_stream() is other
        other.wait_stream(before)
        other.wait_event(other.record_event())
    assert module.current_stream() is before and module.Event().query() is True
    event = module.Event()
    assert event.record() is event.wait() is event.synchronize() is None
