"""GradScaler: stages, skipped steps, the factor's growth, saving."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

import clew
from clew.amp import GradScaler


def setup(**options):
    w = clew.ones(3, requires_grad=True)
    return w, clew.optim.SGD([w], lr=1.0), GradScaler("cpu", **options)


def test_a_step_is_that_without_scaling():
    w, opt, scaler = setup(init_scale=1024.0)
    loss = (w * clew.tensor([1.0, 2.0, 3.0])).sum()
    scaled = scaler.scale(loss)
    assert scaled.item() == loss.item() * 1024
    scaled.backward()
    assert w.grad.tolist() == [1024.0, 2048.0, 3072.0]
    assert scaler.step(opt) is None
    assert w.tolist() == [0.0, -1.0, -2.0]
    assert w.grad.tolist() == [1.0, 2.0, 3.0]
    scaler.update()
    assert scaler.get_scale() == 1024.0


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_a_step_with_a_gradient_that_is_not_finite_is_left_out(bad):
    w, opt, scaler = setup(init_scale=8.0, backoff_factor=0.25)
    scaler.scale(w.sum()).backward()
    w.grad[1] = bad
    scaler.step(opt)
    assert w.tolist() == [1.0, 1.0, 1.0]
    scaler.update()
    assert scaler.get_scale() == 2.0
    opt.zero_grad()
    scaler.scale(w.sum()).backward()
    scaler.step(opt)
    assert w.tolist() == [0.0, 0.0, 0.0]


def test_growth():
    w, opt, scaler = setup(init_scale=4.0, growth_factor=3.0, growth_interval=2)
    scales = []
    for _ in range(5):
        opt.zero_grad()
        scaler.scale(w.sum()).backward()
        scaler.step(opt)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [4.0, 12.0, 12.0, 36.0, 36.0]
    assert scaler._get_growth_tracker() == 1


def test_the_factor_does_not_grow_to_infinity():
    w, opt, scaler = setup(init_scale=2.0**127, growth_interval=1)
    scaler.scale(w.sum() * 2.0**-20).backward()
    scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_unscale_before_clipping():
    w, opt, scaler = setup(init_scale=64.0)
    scaler.scale((w * 10).sum()).backward()
    scaler.unscale_(opt)
    norm = clew.nn.utils.clip_grad_norm_([w], 1.0)
    assert norm.item() == pytest.approx(math.sqrt(300))
    scaler.step(opt)
    assert w[0].item() == pytest.approx(1 - 1 / math.sqrt(3), abs=1e-5)
    scaler.update()


def test_order_of_calls():
    w, opt, scaler = setup()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(opt)
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.update()
    scaler.scale(w.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.unscale_(opt)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(opt)
    scaler.step(opt)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(opt)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(opt)
    scaler.update()
    opt.zero_grad()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(opt)


def test_closures_and_float16_gradients_are_refused():
    w, opt, scaler = setup()
    scaler.scale(w.sum())
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(opt, closure=lambda: 1)
    h = clew.ones(2, dtype=clew.float16, requires_grad=True)
    h.grad = clew.ones(2, dtype=clew.float16)
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(clew.optim.SGD([h], lr=0.1))


def test_several_losses_and_optimizers():
    a, b = clew.ones(1, requires_grad=True), clew.ones(1, requires_grad=True)
    opts = [clew.optim.SGD([p], lr=0.5) for p in (a, b)]
    scaler = GradScaler("cpu", init_scale=4.0)
    losses = scaler.scale([a.sum(), (b.sum(),)])
    assert isinstance(losses, list) and isinstance(losses[1], tuple)
    losses[0].backward()
    losses[1][0].backward()
    b.grad.fill_(math.inf)
    for opt in opts:
        scaler.step(opt)
    scaler.update()
    assert (a.item(), b.item(), scaler.get_scale()) == (0.5, 1.0, 2.0)
    with pytest.raises(ValueError, match="iterable"):
        scaler.scale(3)


def test_disabled():
    w = clew.ones(1, requires_grad=True)
    opt = clew.optim.SGD([w], lr=1.0)
    scaler = GradScaler("cpu", enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
    assert w.item() == 0 and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    assert not scaler.is_enabled()
    scaler.load_state_dict({})
    assert not pickle.loads(pickle.dumps(scaler)).is_enabled()
    with pytest.warns(UserWarning, match="CUDA"):
        assert not GradScaler().is_enabled()


def test_saving():
    w, opt, scaler = setup(init_scale=16.0, growth_interval=7)
    for _ in range(3):
        opt.zero_grad()
        scaler.scale(w.sum()).backward()
        scaler.step(opt)
        scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 16.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 7,
        "_growth_tracker": 3,
    }
    other = GradScaler("cpu")
    other.load_state_dict(state)
    assert other.state_dict() == state
    other.scale(w.sum())
    assert other.state_dict() == state
    for copied in (pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler)):
        assert copied.state_dict() == state
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})
    scaler.scale(w.sum()).backward()
    scaler.unscale_(opt)
    with pytest.raises(AssertionError, match="pickled"):
        pickle.dumps(scaler)


def test_a_new_factor():
    w, _, scaler = setup()
    scaler.scale(w.sum())
    scaler.update(5.0)
    assert scaler.get_scale() == 5.0
    scaler.update(clew.tensor([7.0]))
    assert scaler.get_scale() == 7.0
    with pytest.raises(AssertionError, match="one element"):
        scaler.update(clew.ones(2))
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.1)
    scaler.set_growth_interval(5)
    assert scaler.get_growth_factor() == 3.0
    assert (scaler.get_backoff_factor(), scaler.get_growth_interval()) == (0.1, 5)
    with pytest.raises(AssertionError, match="growth_factor"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff_factor"):
        GradScaler("cpu", backoff_factor=1.0)


def test_an_optimizer_that_unscales_by_itself():
    class Own(clew.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            self.seen = (self.grad_scale.item(), self.found_inf.item())

    w = clew.ones(1, requires_grad=True)
    opt, scaler = Own([w], lr=1.0), GradScaler("cpu", init_scale=32.0)
    scaler.scale(w.sum()).backward()
    scaler.step(opt)
    assert opt.seen == (32.0, 0.0) and not hasattr(opt, "found_inf")
    assert w.grad.item() == 32.0
    scaler.update()
    w.grad.fill_(math.nan)
    scaler.step(opt)
    assert opt.seen == (32.0, 1.0)
    scaler.update()
    assert scaler.get_scale() == 16.0


def test_an_optimizer_that_unscales_and_has_a_factor_of_its_own():
    class Own(clew.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            self.seen = self.grad_scale

    w = clew.ones(1, requires_grad=True)
    opt, scaler = Own([w], lr=1.0), GradScaler("cpu", init_scale=32.0)
    for unscaled, want in ((False, 64.0), (True, 2.0)):
        opt.grad_scale = clew.tensor(2.0)
        scaler.scale(w.sum()).backward()
        if unscaled:
            scaler.unscale_(opt)
        scaler.step(opt)
        assert opt.seen.item() == want
        scaler.update()


def test_loading_into_a_scaler_that_was_used():
    w, opt, scaler = setup(init_scale=16.0, growth_interval=7)
    state = {**scaler.state_dict(), "_growth_tracker": 3}
    scaler.scale(w.sum()).backward()
    scaler.step(opt)
    scaler.update()
    scaler.load_state_dict(state)
    assert scaler.state_dict() == state


def test_training_in_float16():
    clew.manual_seed(0)
    model = clew.nn.Sequential(clew.nn.Linear(4, 16), clew.nn.Tanh(), clew.nn.Linear(16, 1))
    opt = clew.optim.Adam(model.parameters(), lr=0.01)
    scaler = GradScaler("cpu", init_scale=2.0**24, growth_interval=10)
    x = clew.randn(64, 4)
    y = x.sum(1, keepdim=True).sin()
    losses = []
    for _ in range(150):
        opt.zero_grad()
        with clew.autocast("cpu", dtype=clew.float16):
            out = model(x)
            assert out.dtype == clew.float16
            loss = clew.nn.functional.mse_loss(out, y)
        assert loss.dtype == clew.float32
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        losses.append(loss.item())
    assert scaler.get_scale() < 2.0**24  # the first factor was too large for float16
    assert losses[-1] < 0.1 * losses[0]


def test_good_steps_are_counted_anew_after_one_that_is_not_finite():
    w, opt, scaler = setup(init_scale=16.0, growth_factor=2.0, growth_interval=3)
    scales, counts = [], []
    for bad in (False, False, True, False, False, False):
        opt.zero_grad()
        scaler.scale(w.sum()).backward()
        if bad:
            w.grad[0] = math.inf
        scaler.step(opt)
        scaler.update()
        scales.append(scaler.get_scale())
        counts.append(scaler._get_growth_tracker())
    assert scales == [16.0, 16.0, 8.0, 8.0, 8.0, 16.0]
    assert counts == [1, 2, 0, 1, 2, 0]
