"""Profiles of programs that run: what is recorded, and what it adds up to."""

from __future__ import annotations

import time

import pytest
from profiled_net import Net, here, named

import clew
from clew import nn
from clew.profiler import (
    profile,
    record_function,
)


def test_a_sleep_in_a_range_shows_up():
    with profile() as prof:
        with record_function("nap"):
            time.sleep(0.02)
    (nap,) = named(prof, "nap")
    assert 20_000 <= nap.cpu_time_total < 2_000_000
    assert nap.is_user_annotation


def test_times_are_those_of_the_clock():
    with profile() as prof:
        before = time.monotonic_ns()
        with record_function("busy"):
            inner = time.monotonic_ns()
            while time.monotonic_ns() < before + 30_000_000:
                pass
            after = time.monotonic_ns()
        outer = time.monotonic_ns()
    (busy,) = named(prof, "busy")
    assert (after - inner) / 1000 - 1 <= busy.cpu_time_total <= (outer - before) / 1000 + 1
    begin = prof.profiler.recordings[0].started + busy.time_range.start * 1000
    assert before - 1000 <= begin <= inner + 1000


def test_record_function_as_decorator_and_with_arguments():
    @record_function("twice")
    def twice(x, *, by=2):
        """Doc."""
        return x * by

    with profile() as prof:
        twice(clew.ones(2), by=3)
        twice(clew.ones(2))
        with record_function("part", "a=1"):
            pass
    assert len(named(prof, "twice")) == 2
    assert len(named(prof, "part(a=1)")) == 1
    assert twice.__name__ == "twice" and twice.__doc__ == "Doc."
    assert [c.name for c in named(prof, "twice")[0].cpu_children] == ["mul"]
    with pytest.raises(TypeError, match="name must be a str"):
        record_function(3)


def test_ranges_that_overlap():
    with profile() as prof:
        first, second = record_function("first"), record_function("second")
        first.__enter__()
        second.__enter__()
        first.__exit__()
        clew.ones(1)
        second.__exit__()
        clew.zeros(1)
    parents = {e.name: e.cpu_parent and e.cpu_parent.name for e in prof.events()}
    assert parents == {"first": None, "second": None, "ones": "second", "zeros": None}
    assert all(e.self_cpu_time_total >= 0 for e in prof.events())


def test_record_function_without_a_profiler_does_nothing():
    with record_function("alone"):
        assert (clew.ones(2) + 1).sum().item() == 4


def test_operations_are_counted_under_their_names():
    x = clew.ones(3, 3)
    with profile() as prof:
        for _ in range(5):
            x @ x
        x.add_(1)
        nn.functional.conv1d(clew.ones(1, 1, 5), clew.ones(1, 1, 2))
        x.copy_(x + 1)
        x[0, 0].item()
    count = {row.key: row.count for row in prof.key_averages()}
    assert count["matmul"] == 5
    assert count["add_"] == 1 and count["add"] == 1
    assert count["copy_"] >= 1 and count["item"] == 1
    (conv,) = named(prof, "conv1d")
    assert "_conv" in {event.name for event in conv.cpu_children}


def test_self_times_and_children_make_the_total():
    model, x = Net(), clew.randn(4, 32)
    with profile(with_modules=True) as prof:
        with record_function("step"):
            model(x).sum().backward()
    for event in prof.events():
        inside = sum(child.cpu_time_total for child in event.cpu_children)
        assert event.self_cpu_time_total + inside == pytest.approx(event.cpu_time_total)
        assert event.self_cpu_time_total >= 0
        for child in event.cpu_children:
            assert child.time_range.start >= event.time_range.start
            assert child.time_range.end <= event.time_range.end
    (step,) = named(prof, "step")
    top = [event for event in prof.events() if event.cpu_parent is None]
    assert top == [step]
    assert prof.events().self_cpu_time_total == pytest.approx(step.cpu_time_total)


def test_backward_lies_in_backward_and_counts_for_the_forward_line():
    w = clew.randn(64, 64, requires_grad=True)
    with profile() as prof:
        y = w.tanh(); forward = here()  # fmt: skip # noqa: E702
        loss = y.sum()
        loss.backward(); backward = here()  # fmt: skip # noqa: E702
    (node,) = named(prof, "TanhBackward0")
    assert node.is_backward and node.cpu_parent.name == "backward"
    assert node.location.line == forward
    assert node.sequence_nr == named(prof, "tanh")[0].sequence_nr
    assert node.fwd_thread == node.thread
    rows = {row.location.line: row for row in prof.by_line()}
    assert rows[forward].backward_us == pytest.approx(node.cpu_time_total)
    assert rows[forward].forward_us == pytest.approx(named(prof, "tanh")[0].cpu_time_total)
    assert rows[forward].calls == 1
    assert rows[backward].forward_us == 0 and rows[backward].backward_us > 0
    whole = sum(row.total_us for row in rows.values())
    assert whole == pytest.approx(prof.events().self_cpu_time_total)


def test_recorded_backward_counts_for_the_forward_line_too():
    x = clew.randn(5, requires_grad=True)
    with profile() as prof:
        y = (x**3).sum(); forward = here()  # fmt: skip # noqa: E702
        (g,) = clew.autograd.grad(y, x, create_graph=True)
        g.sum().backward()
    inner = [e for e in prof.events() if e.cpu_parent and e.cpu_parent.name == "PowBackward0"]
    assert inner and {e.location.line for e in inner} == {forward}


def test_what_follows_a_rule_counts_for_it():
    x, bias = clew.randn(8, 4), clew.zeros(4, requires_grad=True)
    with profile() as prof:
        y = x + bias; forward = here()  # fmt: skip # noqa: E702
        y.backward(clew.ones(8, 4))
    (total,) = named(prof, "sum")  # over the dim that was broadcast
    assert total.cpu_parent.name == "AddBackward0" and total.is_backward
    assert total.location.line == forward


def test_modules():
    model, x = Net(depth=3), clew.randn(4, 32)
    with profile(profile_memory=True) as prof:
        model(x).sum().backward()
        model(x)
    rows = {row.label: row for row in prof.by_module()}
    assert rows["(Net)"].calls == 2 and rows["blocks.1"].calls == 2
    assert rows["blocks.1.fc"].module_type == "Linear"
    inside = sum(rows[name].forward_us for name in ("blocks.0", "blocks.1", "blocks.2", "head"))
    assert rows["(Net)"].self_forward_us + inside == pytest.approx(rows["(Net)"].forward_us)
    assert rows["blocks"].forward_us == pytest.approx(
        sum(rows[f"blocks.{i}"].forward_us for i in range(3))
    )
    nodes = named(prof, "TanhBackward0")
    own = [node.cpu_time_total for node in nodes if node.module == "blocks.1"]
    assert len(own) == 1
    assert rows["blocks.1"].self_backward_us == pytest.approx(own[0])
    assert rows["blocks.1"].backward_us > rows["blocks.1.fc"].backward_us > 0
    table = prof.by_module().table(sort_by="calls", row_limit=2)
    assert len([line for line in table.splitlines() if not line.startswith("--")]) == 3
    with pytest.raises(ValueError, match="sort_by"):
        prof.by_module().table(sort_by="colour")


def test_flops_by_operation_and_by_line():
    x, w = clew.randn(8, 16), clew.randn(4, 16, requires_grad=True)
    with profile(with_flops=True) as prof:
        y = nn.functional.linear(x, w); line = here()  # fmt: skip # noqa: E702
        y.backward(clew.ones(8, 4))
    product = 2 * 8 * 16 * 4
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["linear"].flops == product
    assert rows["LinearBackward0"].flops == product  # x wants no gradient
    by_line = {row.location.line: row for row in prof.by_line()}
    assert by_line[line].flops == 2 * product
    assert "Total KFLOPs" in prof.key_averages().table()
    with profile() as prof:
        nn.functional.linear(x, w)
    assert {row.flops for row in prof.key_averages()} == {0}


def test_vmap_counts_all_samples():
    w, x = clew.randn(5, 4, 4), clew.randn(4)
    with profile(with_flops=True, record_shapes=True) as prof:
        clew.func.vmap(lambda one: one @ x)(w)
    assert sum(event.flops for event in prof.events()) == 5 * 2 * 4 * 4


def test_shapes():
    with profile(record_shapes=True) as prof:
        clew.ones(2, 3) * clew.ones(3)
        clew.ones(2, 3) * clew.ones(3)
        clew.ones(4) * 2
        clew.ones(2, 3).sum(1, keepdim=True)
    mul = named(prof, "mul")[0]
    assert (mul.input_shapes, mul.input_dtypes) == ([[2, 3], [3]], ["float32", "float32"])
    assert mul.output_shapes == [[2, 3]]
    assert named(prof, "sum")[0].concrete_inputs["keepdim"] is True
    rows = [r for r in prof.key_averages(group_by_input_shape=True) if r.key == "mul"]
    assert [(row.count, row.input_shapes) for row in rows] == [
        (2, [[2, 3], [3]]),
        (1, [[4], []]),
    ]
    assert "[[2, 3], [3]]" in prof.key_averages(group_by_input_shape=True).table()
    with profile() as prof:
        clew.ones(2)
    with pytest.raises(RuntimeError, match="record_shapes=True"):
        prof.key_averages(group_by_input_shape=True)


def test_overloads():
    x = clew.ones(3, 3)
    with profile() as prof:
        x.sum()
        x.sum(1)
        x.max()
        x.max(1)
    rows = [r for r in prof.key_averages(group_by_overload_name=True) if r.key == "max"]
    assert len(rows) == 2 and len({row.overload_name for row in rows}) == 2
    assert "Overload Name" in prof.key_averages(group_by_overload_name=True).table()


def inner_function(x):
    return x * 2


def outer_function(x):
    return inner_function(x)


def test_stacks(tmp_path):
    with profile(with_stack=True) as prof:
        outer_function(clew.ones(2))
    (mul,) = named(prof, "mul")
    functions = [frame.split(": ")[1] for frame in mul.stack]
    assert functions[:3] == ["inner_function", "outer_function", "test_stacks"]
    (row,) = [r for r in prof.key_averages(group_by_stack_n=2) if r.key == "mul"]
    assert [frame.split(": ")[1] for frame in row.stack] == ["inner_function", "outer_function"]
    with profile(with_stack=True) as prof:
        with record_function("nap"):
            time.sleep(0.001)
    prof.export_stacks(str(tmp_path / "stacks"))
    (line,) = (tmp_path / "stacks").read_text().splitlines()
    frames, value = line.rsplit(" ", 1)
    assert int(value) >= 1000
    assert frames.split(";")[-1].endswith("test_stacks")
    with pytest.raises(ValueError, match="self_cpu_time_total"):
        prof.export_stacks(str(tmp_path / "x"), "self_cuda_time_total")
    with profile() as prof:
        clew.ones(2)
    assert len(prof.events()[0].stack) == 1
    with pytest.raises(RuntimeError, match="with_stack=True"):
        prof.export_stacks(str(tmp_path / "x"))


def test_optimizer_and_loader_are_marked():
    model = nn.Linear(4, 2)
    opt = clew.optim.SGD(model.parameters(), lr=0.1)
    data = clew.utils.data.DataLoader(clew.utils.data.TensorDataset(clew.randn(6, 4)), batch_size=3)
    with profile() as prof:
        for (x,) in data:
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()
    count = {row.key: row.count for row in prof.key_averages()}
    assert count["Optimizer.step#SGD.step"] == 2
    assert count["Optimizer.zero_grad#SGD.zero_grad"] == 2
    passes = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    assert count[passes] == 3  # the last finds nothing
    assert count["_fused_sgd"] == 2


def test_custom_functions_are_events():
    class Double(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = clew.ones(3, requires_grad=True)
    with profile() as prof:
        Double.apply(x).sum().backward()
    (forward,) = named(prof, "Double")
    assert [child.name for child in forward.cpu_children] == ["mul"]
    (node,) = named(prof, "DoubleBackward")
    assert [child.name for child in node.cpu_children] == ["mul"]
    assert node.location.line == forward.location.line


def test_autocast_does_not_count_twice():
    x = clew.randn(8, 8)
    with profile() as prof:
        with clew.autocast("cpu"):
            x @ x
    assert len(named(prof, "matmul")) == 1


def test_profiled_results_are_the_same():
    def train():
        clew.manual_seed(3)
        model = Net()
        opt = clew.optim.Adam(model.parameters())
        for _ in range(3):
            opt.zero_grad()
            model(clew.randn(4, 32)).square().mean().backward()
            opt.step()
        return [p.detach().clone() for p in model.parameters()]

    expected = train()
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True):
        got = train()
    assert all(clew.equal(a, b) for a, b in zip(expected, got))


def test_writes_at_indices_are_operations():
    x, at = clew.zeros(100, 4), clew.arange(90)
    with profile() as prof:
        x[at] = clew.ones(90, 4)
        x.index_put_((at,), clew.ones(4), accumulate=True)
        x[at, 0] = 5.0  # by a shorter way where nobody watches
    assert len(named(prof, "_index_put_")) == 3
    assert x[:90].tolist() == [[5.0, 2.0, 2.0, 2.0]] * 90 and x[90:].tolist() == [[0.0] * 4] * 10
