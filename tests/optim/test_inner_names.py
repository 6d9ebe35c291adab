"""Names within optimizers and schedulers, which classes of programs must not meet by chance."""

import inspect
from collections import OrderedDict

import pytest

import clew
from clew import optim
from clew.optim import lr_scheduler, swa_utils

# What PyTorch's own classes have; programs know these and leave them alone.
PYTORCHS = set(
    "_group_tensors_by_device_and_dtype _get_closed_form_lr _get_lr_called_within_step "
    "_patch_step_function _initial_step _is_initial _update_lr _is_better _reduce_lr _reset _apply "
    "_register_load_state_dict_pre_hook _register_state_dict_hook _make_subclass "
    "_cosine_anneal _linear_anneal _triangular_scale_fn _triangular2_scale_fn "
    "_exp_range_scale_fn".split()
)
CLASSES = [
    kind
    for module in (optim, lr_scheduler, swa_utils)
    for kind in vars(module).values()
    if inspect.isclass(kind)
    and issubclass(kind, (optim.Optimizer, lr_scheduler.LRScheduler, swa_utils.AveragedModel))
]


@pytest.mark.parametrize("kind", CLASSES)
def test_own_names_say_so(kind):
    names = {n for k in kind.__mro__ if k.__module__.startswith("clew.optim") for n in vars(k)}
    single = {n for n in names if n.startswith("_") and not n.startswith("__")}
    assert {n for n in single if not n.startswith("_clew_")} <= PYTORCHS


def test_a_subclass_with_names_that_come_to_mind():
    class Mine(optim.Adam):
        def _update(self):
            raise AssertionError("the program's own")

        _init_state = _step = _update_all = _keeps_state = _step_each = _update

    def stepped(kind):
        w = clew.nn.Parameter(clew.tensor([1.0, -2.0]))
        optimizer = kind([w], lr=0.25)
        for _ in range(2):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
        return w.tolist()

    assert stepped(Mine) == stepped(optim.Adam)
    assert stepped(Mine)[0] == pytest.approx(0.5, abs=0.02)


def test_a_wrapper_calls_for_the_hooks_of_its_step():
    class Wrapper(optim.Optimizer):
        def __init__(self, inner):
            self._optimizer_step_pre_hooks = OrderedDict()
            self._optimizer_step_post_hooks = OrderedDict()
            self._patch_step_function()
            self.inner = inner

    Wrapper.step = lambda self, closure=None: self.inner.step(closure)
    w = clew.ones(1, requires_grad=True)
    wrapper = Wrapper(optim.SGD([w], lr=1.0))
    seen = []
    wrapper.register_step_pre_hook(lambda *_: seen.append("before"))
    wrapper.register_step_post_hook(lambda *_: seen.append("after"))
    w.grad = clew.ones(1)
    wrapper.step()
    assert seen == ["before", "after"]
    assert w.item() == 0
