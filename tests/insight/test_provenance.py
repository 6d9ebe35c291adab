"""Every node knows the user's line and the module it was made in; messages say so."""

from __future__ import annotations

import gc
import sys
import weakref
from functools import partial

import pytest

import clew
from clew import _C, nn
from marked_lines import line_of_mark

line_of = partial(line_of_mark, __file__)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x).relu()  # block


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x * 2  # net


def test_a_node_knows_its_line():
    x = clew.ones(2, requires_grad=True)
    y = x.exp()  # exp line
    here = y.grad_fn.location
    assert (here.file, here.line) == (__file__, line_of("exp line"))
    assert here.function == "test_a_node_knows_its_line"
    assert here.source == "y = x.exp()  # exp line"
    assert y.grad_fn.module is None
    assert y.grad_fn.next_functions[0][0].location is None  # a leaf's


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns come with Python 3.11")
def test_columns_tell_operations_of_one_line_apart():
    x = clew.ones(2, requires_grad=True)
    y = x.exp() + x.sin()
    exp, sin = (fn for fn, _ in y.grad_fn.next_functions)
    assert exp.location.column < sin.location.column
    assert y.grad_fn.location.column == exp.location.column  # the sum begins where exp does


def test_frames_of_the_library_are_skipped():
    x = clew.randn(3, 4, requires_grad=True)
    y = nn.functional.gumbel_softmax(x)  # library
    seen = []
    pending = [y.grad_fn]
    while pending:
        node = pending.pop()
        if node.location is not None:
            seen.append((node.location.file, node.location.line))
        pending += [fn for fn, _ in node.next_functions if fn is not None]
    assert set(seen) == {(__file__, line_of("library"))}


def test_a_node_knows_its_module():
    net = Net()
    y = net(clew.ones(1, 4))
    relu = y.grad_fn.next_functions[0][0]
    linear = relu.next_functions[0][0]
    assert (y.grad_fn.module, y.grad_fn.module_type) == ("", "Net")
    assert (relu.module, relu.module_type) == ("blocks.1", "Block")
    assert (linear.module, linear.module_type) == ("blocks.1.fc", "Linear")
    # The user's line is the one that calls the library's module.
    assert linear.location.line == line_of("block")


def test_a_shared_module_is_named_as_its_caller_knows_it():
    class Pair(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.mine = inner

        def forward(self, x):
            return self.mine(x)

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            inner = nn.Linear(2, 2)
            self.a, self.b = Pair(inner), Pair(inner)

        def forward(self, x):
            return self.b(self.a(x))

    for _ in range(200):  # later ones lie where earlier ones did
        y = Both()(clew.ones(1, 2))
        assert y.grad_fn.module == "b.mine"
        assert y.grad_fn.next_functions[0][0].module == "a.mine"


def test_a_module_of_no_parent_is_named_by_its_class():
    loose = nn.Linear(2, 2)

    class Outer(nn.Module):
        def forward(self, x):
            return loose(x)

    assert Outer()(clew.ones(1, 2)).grad_fn.module == "<Linear>"


def test_recursion_stays_in_the_module():
    class Countdown(nn.Module):
        def forward(self, x, n):
            return self(x * 2, n - 1) if n else x.exp()

    y = Countdown()(clew.ones(1, requires_grad=True), 3)
    assert y.grad_fn.module == ""
    assert y.grad_fn.next_functions[0][0].module == ""


def test_modules_that_call_each_other_do_not_pile_up_paths():
    class Even(nn.Module):
        def forward(self, x, n):
            return self.odd(x * 2, n - 1) if n else x.exp()

    class Odd(nn.Module):
        def forward(self, x, n):
            return even(x * 2, n - 1)

    even = Even()
    even.odd = Odd()
    y = even(clew.ones(1, requires_grad=True), 6)
    modules = []
    node = y.grad_fn
    while node.location is not None:
        modules.append(node.module)
        node = node.next_functions[0][0]
    assert modules == ["", "odd", "", "odd", "", "odd", ""]


def test_a_module_that_raised_is_left():
    class Bad(nn.Module):
        def forward(self, x):
            raise KeyError("bad")

    with pytest.raises(KeyError):
        Bad()(1)
    assert (clew.ones(1, requires_grad=True) * 2).grad_fn.module is None


def test_nodes_do_not_keep_modules_alive():
    net = Net()
    y = net(clew.ones(1, 4))
    net.kept = y  # would be a circle that nothing can find
    gone = weakref.ref(net)
    del net, y
    gc.collect()
    assert gone() is None


def test_nodes_of_a_recorded_backward_come_from_the_forward_line():
    x = clew.ones(2, requires_grad=True)
    y = x.exp()  # forward line
    (g,) = clew.autograd.grad(y.sum(), x, create_graph=True)
    assert g.grad_fn.location.line == line_of("forward line")


def test_in_place_writes_leave_their_line():
    x = clew.zeros(3)
    assert _C._place_of_write(x) is None
    x.add_(1)  # write
    view = x[:2]
    code, offset, module, _ = _C._place_of_write(view)
    assert clew._base.provenance.Location(code, offset).line == line_of("write")
    assert module is None
    view[0] = 5  # later write
    code, offset, *_ = _C._place_of_write(x)
    assert clew._base.provenance.Location(code, offset).line == line_of("later write")


def test_it_can_be_switched_off():
    before = _C._enable_provenance(False)
    try:
        y = clew.ones(1, requires_grad=True) * 2
        assert y.grad_fn.location is None
        with pytest.raises(RuntimeError, match="second time"):
            z = (y * y).sum()
            z.backward()
            z.backward()
    finally:
        _C._enable_provenance(before)


def test_generators_threads_and_lambdas():
    import threading

    x = clew.ones(1, requires_grad=True)

    def values():
        yield x * 2  # generator

    assert next(values()).grad_fn.location.line == line_of("generator")
    made = []
    thread = threading.Thread(target=lambda: made.append(x * 3))  # thread
    thread.start()
    thread.join()
    assert made[0].grad_fn.location.line == line_of("thread")
    assert next(map(x.__mul__, [2])).grad_fn.location.function.startswith("test_generators")


def test_functions_of_equal_text_are_told_apart():
    def one(x):
        return x * 2  # one

    def two(x):
        return x * 2  # two

    x = clew.ones(1, requires_grad=True)
    made = [f(x).grad_fn.location for f in (one, two, one)]
    assert [at.line for at in made] == [line_of("one"), line_of("two"), line_of("one")]


def test_code_made_at_run_time():
    space = {"x": clew.ones(1, requires_grad=True)}
    exec(compile("\n\ny = x * 2", "<typed>", "exec"), space)
    here = space["y"].grad_fn.location
    assert (here.file, here.line, here.source) == ("<typed>", 3, "")


def test_places_of_many_modules_are_kept_from_call_to_call():
    """What has to be found anew at each call costs time and memory; a few may."""
    model = nn.Sequential(*(nn.Linear(1, 1) for _ in range(300)))
    x = clew.ones(1, 1)

    def places(*results):
        return len(_C._export_graph(results)["places"])

    first, second = [model(x) for _ in range(2)]  # one instruction
    assert places(first) == 300
    assert places(first, second) < 360
