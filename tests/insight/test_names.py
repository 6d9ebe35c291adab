"""Which tensor, module, line and rewrite a message names where more than one could be meant."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import clew
from clew import nn
from clew.nn import functional as F

columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="columns come with Python 3.11")


def line() -> int:
    """The line that calls it."""
    return sys._getframe(1).f_lineno


def modules_of(y):
    """Paths of the modules that made y, the first called first."""
    return [node.module for node in reversed(y.history())]


def text_of_second_backward(y):
    y.backward()
    with pytest.raises(RuntimeError, match="second time") as e:
        y.backward()
    return str(e.value)


# ---- names of results ----


def test_steps_of_a_function_do_not_go_by_the_name_of_its_result():
    x = clew.ones(3, 4, requires_grad=True)
    loss = F.l1_loss(x * 2, clew.zeros(3, 4))
    text = text_of_second_backward(loss)  # what was freed first is the absolute value
    assert "float32[3, 4]" in text
    assert "`loss`, float32" not in text

    criterion = nn.PoissonNLLLoss()
    loss = criterion(x, clew.zeros(3, 4))
    assert "`loss`, float32" not in text_of_second_backward(loss)

    y = x * 1
    near = F.cosine_similarity(y, y)
    y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace") as e:
        near.sum().backward()
    assert "`near`, float32[3, 4]" not in str(e.value)


class Cube(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.all = nn.Sequential(nn.Linear(4, 4), nn.Tanh())


@columns
def test_results_of_one_operation_go_by_their_name():
    x = clew.ones(3, 4, requires_grad=True)
    net = Net()
    h1 = x * 2
    h2 = x.exp()
    h3 = F.softmax(x, 1)
    h4 = net.fc(x)
    h5 = x.flatten()
    h6 = Cube.apply(x)
    h7 = net.all(x)  # two
    h8 = x[0]
    h9 = x.T
    results = (h1, h2, h3, h4, h5, h6, h7, h8, h9)
    for i, h in enumerate(results, 1):
        with pytest.raises(RuntimeError) as e:
            [h][0] + clew.ones(7, 7, 7, 7)
        assert (f"`h{i}`, float32" in str(e.value)) == (h is not h7), e.value


# ---- operands of what failed ----


class Mixes(nn.Module):
    def __init__(self, way) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.gain = nn.Parameter(clew.ones(7))
        self.register_buffer("place", clew.zeros(9, 6))
        self.way = way

    def forward(self, x):
        h = self.fc(x)
        table = h @ h.T
        return self.way(self, x, h, table) if self.way else h


def failure(way) -> str:
    net = nn.Sequential(*[nn.Sequential(Mixes(None), Mixes(way if i else None)) for i in range(2)])
    with pytest.raises(RuntimeError) as e:
        net(clew.ones(3, 6))
    return str(e.value)


@columns
def test_operands_of_a_shape_error_go_by_the_names_on_its_line():
    told = failure(lambda self, x, h, table: x + table)
    assert "\n  `x`, float32[3, 6], was made by LinearBackward0 at " in told
    assert "\n  `table`, float32[3, 3], was made by MatmulBackward0 at " in told
    for way in (
        lambda self, x, h, table: x * self.gain,
        lambda self, x, h, table: clew.mul(x, self.gain),
        lambda self, x, h, table: x.mul(self.gain),
    ):
        told = failure(way)
        assert "\n  `self.gain`, float32[7], is the parameter 1.1.gain of Sequential" in told
    told = failure(lambda self, x, h, table: clew.cat([h, self.place.T]))
    assert "`h`, float32[3, 6], was made by LinearBackward0" in told
    told = failure(lambda self, x, h, table: h - self.place)
    assert "`self.place`, float32[9, 6], is the buffer 1.1.place of Sequential" in told
    told = failure(lambda self, x, h, table: self.fc(table))
    assert "`table`, float32[3, 3], was made by" in told
    assert "float32[6, 6] is the parameter 1.1.fc.weight of Sequential" in told
    assert "fc.bias" not in told  # fits


@columns
def test_an_operand_has_no_name_where_the_line_shows_another_operation():
    told = failure(lambda self, x, h, table: h.masked_fill(table > 0, 1))  # ends in where()
    assert "`table`" not in told
    told = failure(lambda self, x, h, table: F.linear(input=table, weight=self.fc.weight))
    assert "`self.fc.weight`" not in told and "1.1.fc.weight of Sequential" in told


def test_layers_of_a_sequential_tell_which_of_them_made_the_operand():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(99, 10))
    with pytest.raises(RuntimeError) as e:
        net(clew.ones(2, 3, 8, 8))
    assert "float32[2, 288] was made by ViewBackward0 in module 2: Flatten" in str(e.value)
    assert "float32[10, 99] is the parameter 3.weight of Sequential" in str(e.value)


def test_a_loss_names_input_and_target():
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        with pytest.raises(
            RuntimeError, match=r"^\w+: input and target must have one shape; got "
        ) as e:
            loss(clew.ones(2, 3), clew.ones(2, 5))
        assert "float32[2, 3] and float32[2, 5]" in str(e.value)
        assert loss.__name__ in str(e.value)


# ---- names of arguments ----


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        (nn.Conv2d, (3, "8", 3), "Conv2d: out_channels must be an int; got str '8'"),
        (nn.Conv2d, (3.0, 8, 3), "Conv2d: in_channels must be an int; got float 3.0"),
        (nn.Conv1d, (3, 8, 3, "2"), "Conv1d: stride must be an int; got str '2'"),
        (nn.ConvTranspose2d, (3, 8, "3"), "ConvTranspose2d: kernel_size must be an int; got str"),
        (nn.Linear, (2.5, 3), "Linear: in_features must be an int; got float 2.5"),
        (nn.BatchNorm2d, ("3",), "BatchNorm2d: num_features must be an int; got str '3'"),
        (nn.GRU, ("2", 3), "GRU: input_size must be an int; got str '2'"),
        (nn.LSTM, (2, 3, 1.5), "LSTM: num_layers must be an int; got float 1.5"),
    ],
)
def test_a_layer_names_the_size_that_is_no_whole_number(kind, given, told):
    with pytest.raises(TypeError) as e:
        kind(*given)
    assert str(e.value).startswith(told)


def test_layers_name_themselves_and_not_what_they_are_made_of():
    layers = [kind for kind in vars(nn).values() if isinstance(kind, type)]
    layers = [kind for kind in layers if issubclass(kind, nn.Module)]
    for kind in layers:
        with pytest.raises((TypeError, ValueError)) as e:
            kind(mistyped=1) if kind is not nn.Identity else kind(1)(2, 3)
        assert str(e.value).startswith((f"{kind.__name__}.", f"{kind.__name__}: int")), kind
        own = [name for name in kind.forward.__qualname__.split(".") if name.startswith("_")]
        assert not own, kind
    with pytest.raises(TypeError, match=r"^Conv2d\.forward\(\) takes 2 positional arguments"):
        nn.Conv2d(3, 8, 3)(clew.ones(1, 3, 8, 8), 2)
    with pytest.raises(TypeError, match=r"^max_pool2d\(\): argument 'input'"):
        nn.MaxPool2d(2)([1, 2])


# ---- out-of-place forms ----


@columns
def test_a_module_of_functions_is_not_what_is_written():
    x = clew.ones(3, requires_grad=True)

    def advice(write):
        h = x.exp()
        write(h)
        with pytest.raises(RuntimeError, match="modified by an inplace") as e:
            h.sum().backward()
        return str(e.value).rsplit("\n", 1)[1].strip()

    def method(h):
        h.mul_(2)

    def function(h):
        F.relu_(h)

    def own(h):
        clew.sigmoid_(h)

    def chain(h):
        h.mul_(2).add_(1)

    assert advice(method).endswith("write `h = h.mul(2)`")
    for write in (function, own, chain):
        assert advice(write).startswith("write into a clone()")


# ---- modules ----


def test_modules_that_moved_go_by_their_new_names():
    x = clew.ones(1, 2)
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    assert modules_of(net(x)) == ["0", "1"]
    net.insert(0, nn.Linear(2, 2))
    assert modules_of(net(x)) == ["0", "1", "2"]
    del net[1]
    assert modules_of(net(x)) == ["0", "1"]

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
            self.named = nn.ModuleDict({"a": nn.Linear(2, 2)})
            self.one = nn.Linear(2, 2)

        def forward(self, x):
            for part in [*self.parts, *self.named.values(), *self.children()]:
                if isinstance(part, nn.Linear):
                    x = part(x)
            return x

    net = Holder()
    assert modules_of(net(x)) == ["parts.0", "parts.1", "named.a", "one"]
    net.parts.insert(0, nn.Linear(2, 2))
    net.named["b"] = net.named.pop("a")
    moved, net.other = net.one, net.one
    del net.one
    assert net.other is moved
    assert modules_of(net(x)) == ["parts.0", "parts.1", "parts.2", "named.b", "other"]
    moved, net.other = net.other, nn.Linear(2, 2)
    net.third = moved
    assert modules_of(net(x))[-2:] == ["other", "third"]


# ---- lines ----


def test_no_grad_was_entered_where_it_began_also_after_an_inner_enable_grad():
    w = clew.ones(3, requires_grad=True)
    begun = line() + 1
    with clew.no_grad():
        with clew.enable_grad():
            with clew.no_grad():
                w * 2
            assert (w * 2).requires_grad
        c = w * 3
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        c.sum().backward()
    assert f"test_names.py:{begun} " in str(e.value).split("entered at ")[1]
    assert clew.is_grad_enabled()


def test_what_a_backward_in_python_runs_has_lines_of_its_own():
    def part(x):
        h = x.exp()
        h += 1
        return h * 2

    x = clew.ones(2, requires_grad=True)
    y = clew.utils.checkpoint.checkpoint(part, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="modified by an inplace") as e:
        y.sum().backward()
    first = part.__code__.co_firstlineno
    assert f"test_names.py:{first + 1} in " in str(e.value).split("saved at ")[1]
    assert f"test_names.py:{first + 2} in " in str(e.value).split("written at ")[1]

    y = Cube.apply(x)
    (grad,) = clew.autograd.grad(y.sum(), x, create_graph=True)
    assert grad.grad_fn.location.source == "return grad * 3 * x * x"
    # A backward of the library's own shows the line that its operation ran on.
    a = clew.eye(2, requires_grad=True)
    z = clew.linalg.inv(a)
    made = line() - 1
    (grad,) = clew.autograd.grad(z.sum(), a, create_graph=True)
    assert {node.location.line for node in grad.history(100)} == {made}


def test_torch_function_is_not_the_line():
    class Marked(clew.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs or {})

    x = clew.ones(2, requires_grad=True).as_subclass(Marked)
    y = x * 2
    assert y.grad_fn.location.line == line() - 1


@pytest.mark.parametrize("way", ["./src", "docs/../src"])
def test_the_library_knows_itself_however_it_was_found(way):
    root = Path(clew.__file__).parents[2]
    if root.name == "site-packages" or not (root / "src").exists():
        pytest.skip("runs in a checkout")
    program = f"""
    import sys
    sys.path.insert(0, {way!r})
    import clew
    y = clew.nn.functional.mse_loss(clew.ones(2, requires_grad=True), clew.zeros(2))
    print({{node.location.file for node in y.history()}})
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "{'<string>'}\n", done.stderr


def test_a_path_that_is_not_utf_8():
    space: dict = {}
    source = "def f(x):\n  h = x.exp()\n  h += 1\n  return h.sum()"
    exec(compile(source, "/tmp/\udce9.py", "exec"), space)
    with pytest.raises(RuntimeError, match="modified by an inplace") as e:
        space["f"](clew.ones(1, requires_grad=True)).backward()
    assert "saved at /tmp/\\udce9.py:2 in f" in str(e.value)
    assert "written at /tmp/\\udce9.py:3 in f" in str(e.value)


# ---- what is said ----


def test_frozen_parameters_are_told_beside_the_reason():
    frozen = nn.Linear(2, 2).requires_grad_(False)
    frozen(clew.ones(1, 2))
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        clew.zeros(3).sum().backward()
    told = str(e.value)
    reason = told.index("nothing that it was computed from requires grad")
    assert reason < told.index("all 2 parameters of Linear are frozen")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes come with Python 3.11")
def test_an_exception_that_is_raised_again_gets_its_note_once():
    error = ValueError("no")

    def fail(grad):
        raise error

    x = clew.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(fail)
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            y.sum().backward()
    assert len(error.__notes__) == 1


# ---- what belongs to the program ----


def test_a_functions_context_may_hold_any_name():
    class Scale(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x, module):
            ctx.module, ctx.location, ctx.module_type = module, "here", None
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert (ctx.module, ctx.location, ctx.module_type) == ("m", "here", None)
            return grad * 2, None

    x = clew.ones(2, requires_grad=True)
    y = Scale.apply(x, "m")
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert y.history()[0].location.source == 'y = Scale.apply(x, "m")'


# ---- watching ----


def test_detect_anomaly_stays_in_its_thread():
    told = []

    def root_of_negative():
        x = clew.zeros(1, requires_grad=True)
        try:
            ((x * 0).sqrt() * 0).sum().backward()
        except RuntimeError:
            return True
        return False

    def other():
        told.append(clew.is_anomaly_enabled())
        with clew.autograd.detect_anomaly():
            told.append(root_of_negative())
        told.append(clew.is_anomaly_enabled())
        told.append(root_of_negative())

    with clew.autograd.detect_anomaly():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert clew.is_anomaly_enabled()
        assert root_of_negative()
    assert told == [False, True, False, False]
    assert not clew.is_anomaly_enabled()


def test_a_birth_in_vmap_is_told_once():
    with clew.debug.nan_watch(action="record") as watch:
        clew.vmap(clew.log)(clew.tensor([-1.0, 2.0]))
        clew.vmap(lambda x: F.softplus(x).log().log())(clew.full((2, 3), -3.0))
    assert [found.operation for found in watch.found] == ["log", "log"]
    assert "for each of 2 samples" in watch.found[0].inputs[0]


def test_sure_probabilities_are_no_false_alarm():
    p = clew.tensor([0.0, 1.0, 0.5], requires_grad=True)
    with clew.debug.nan_watch():
        loss = F.binary_cross_entropy(p, clew.tensor([1.0, 0.0, 1.0]), reduction="none")
        loss.sum().backward()
    assert loss.tolist()[:2] == [100, 100]
    with clew.debug.nan_watch():
        loss = F.poisson_nll_loss(
            clew.ones(2), clew.tensor([0.0, 2.0]), full=True, reduction="none"
        )
    assert loss[0].item() == pytest.approx(math.e, rel=1e-6)
    stirling = 2 * math.log(2) - 2 + 0.5 * math.log(4 * math.pi)
    assert loss[1].item() == pytest.approx(math.e - 2 + stirling, rel=1e-6)


def test_queries_that_may_look_at_nothing_are_no_false_alarm():
    q, k, v = (clew.randn(1, 2, 5, 8, requires_grad=True) for _ in range(3))
    mask = clew.ones(5, 5).bool()
    mask[3] = False
    with clew.debug.nan_watch():
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        out.sum().backward()
    assert (out[:, :, 3] == 0).all()
    assert (q.grad[:, :, 3] == 0).all()
    assert (q.grad[:, :, 2] != 0).any()


def test_the_error_of_nan_watch_can_be_pickled():
    with pytest.raises(clew.debug.NonFiniteError) as e, clew.debug.nan_watch():
        clew.log(clew.tensor([-1.0]))
    copy = pickle.loads(pickle.dumps(e.value))
    assert str(copy) == str(e.value)
    assert copy.found == e.value.found


@pytest.mark.parametrize(
    ("use", "leads"),
    [
        ("kept.append(s)\nx = clew.tensor(kept)", True),
        ("x = clew.randn(2) * s", True),
        ("print(s)\nx = clew.zeros(2)\nprint(x)", False),
        ("clew.debug.memory(s)\nx = clew.zeros(2)", False),
        ("np.save('a', s)\nx = np.ones(2)", False),
    ],
)
def test_what_is_called_with_a_value_does_not_carry_it_on(use, leads, tmp_path):
    """Behind print(s) every line that prints was said to use s, as was every use of a module."""
    from clew._insight.explain import _flows

    source = "import clew\nimport numpy as np\nkept = []\ns = w.item()\n" + use + "\n"
    path = tmp_path / "program.py"
    path.write_text(source)
    assert _flows(str(path), 4, source.count("\n")) is leads
