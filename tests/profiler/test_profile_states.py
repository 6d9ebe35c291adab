"""When a profiler records: its states, its arguments, its schedule."""

from __future__ import annotations

import gc
import os
import threading

import pytest
from profiled_net import Net, named

import clew
from clew import _C
from clew.autograd import profiler as plain
from clew.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def test_two_profilers_at_once_are_refused():
    with profile() as prof:
        with pytest.raises(RuntimeError, match="another profiler is recording"):
            with profile():
                pass
        with pytest.raises(RuntimeError, match="another profiler is recording"):
            plain.profile().__enter__()
        clew.ones(1)
    assert len(prof.events()) == 1
    with profile() as again:
        clew.ones(1)
    assert len(again.events()) == 1


def test_exceptions_pass_and_end_the_recording():
    class Wrong(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("inside")

    with pytest.raises(ZeroDivisionError):
        with profile() as prof:
            with record_function("outer"):
                try:
                    clew.ones(2) @ clew.ones(3)
                except RuntimeError:
                    pass
                with pytest.raises(KeyError, match="inside"):
                    Wrong.apply(clew.ones(2, requires_grad=True)).sum().backward()
                clew.ones(1) + 1
                raise ZeroDivisionError
    (outer,) = named(prof, "outer")
    assert [child.name for child in outer.cpu_children][-2:] == ["ones", "add"]
    assert [c.name for c in outer.cpu_children if c.name == "matmul"] == ["matmul"]
    assert named(prof, "WrongBackward")[0].cpu_parent.name == "backward"


def test_a_profiler_stopped_inside_backward():
    x = clew.ones(3, requires_grad=True)
    y = x * 2
    prof = profile()
    y.register_hook(lambda grad: prof.stop())
    prof.start()
    with_range = record_function("open")
    with_range.__enter__()
    (y * 3).sum().backward()
    with_range.__exit__()
    assert x.grad.tolist() == [6, 6, 6]
    assert prof.events()[0].name == "open"
    with profile() as later:
        clew.ones(1)
    assert [e.name for e in later.events()] == ["ones"]
    assert later.events()[0].cpu_parent is None


def test_nothing_is_recorded_outside():
    with profile() as prof:
        pass
    clew.ones(3) * 2
    assert list(prof.events()) == []
    assert prof.key_averages().table() == ""


def test_asking_before_or_during_a_recording():
    prof = profile()
    with pytest.raises(AssertionError, match="start the profiler first"):
        prof.key_averages()
    with prof:
        with pytest.raises(RuntimeError, match="nothing was recorded yet"):
            prof.events()


def test_threads():
    barrier = threading.Barrier(2)

    def work(x):
        barrier.wait()
        clew.empty(1)  # a thread is noticed when it first allocates
        for _ in range(20):
            x = x * 2
        with record_function(threading.current_thread().name):
            x.sum()

    others = [threading.Thread(target=work, args=(clew.ones(8),), name=f"w{i}") for i in range(2)]
    with profile() as prof:
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
    first, second = named(prof, "w0")[0], named(prof, "w1")[0]
    assert first.thread != second.thread
    for event in prof.events():
        assert event.cpu_parent is None or event.cpu_parent.thread == event.thread
    assert len(named(prof, "mul")) == 40
    # A thread that was recorded does not go on when the profile has ended.
    assert not _C._trace_running()


def test_a_long_thread_stops_recording_with_the_profiler():
    go, done = threading.Event(), threading.Event()
    seen = []

    def work():
        with profile() as prof:
            clew.ones(2)
        go.set()
        done.wait(10)
        seen.append(prof)

    thread = threading.Thread(target=work)
    thread.start()
    assert go.wait(10)
    x = clew.ones(3) + 1  # this thread was never part of it
    done.set()
    thread.join()
    assert x.tolist() == [2, 2, 2]
    assert [e.name for e in seen[0].events()] == ["ones"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_not_recorded():
    with profile() as prof:
        child = os.fork()
        if child == 0:
            left = _C._trace_running()
            (clew.ones(2) + 1).sum()
            os._exit(1 if left or _C._trace_running() else 0)
        _, status = os.waitpid(child, 0)
        clew.ones(1)
    assert os.waitstatus_to_exitcode(status) == 0
    assert [e.name for e in prof.events()] == ["ones"]


def test_recordings_are_let_go():
    gc.collect()
    before = _C._memory_stats()["live_bytes"]
    with profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        Net()(clew.randn(4, 32)).sum().backward()
    prof.events()
    del prof
    gc.collect()
    assert _C._memory_stats()["live_bytes"] == before


# arguments


def test_activities():
    assert supported_activities() == {ProfilerActivity.CPU}
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        clew.ones(1)
    assert len(prof.events()) == 1
    with pytest.warns(UserWarning, match="CUDA is not there"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.raises(AssertionError, match="ProfilerActivity.CPU"):
        profile(activities=[])
    with pytest.raises(TypeError, match="ProfilerActivity members"):
        profile(activities=["cpu"])


@pytest.mark.parametrize(
    "argument", ["experimental_config", "execution_trace_observer", "post_processing_timeout_s"]
)
def test_what_is_not_offered_is_refused(argument):
    with pytest.raises(NotImplementedError, match=argument):
        profile(**{argument: 1.0})
    with pytest.raises(NotImplementedError, match="toggle_collection_dynamic"):
        profile().toggle_collection_dynamic(True, [ProfilerActivity.CPU])


def test_memory_needs_memory():
    with profile() as prof:
        clew.ones(1)
    for ask in (prof.peak, prof.memory_timeline):
        with pytest.raises(RuntimeError, match="profile_memory=True"):
            ask()


def test_plain_profile():
    with plain.profile(record_shapes=True) as prof:
        clew.ones(2) * 2
    assert [e.name for e in prof.function_events] == ["ones", "mul"]
    assert "mul" in prof.table(sort_by="count") and "mul" in str(prof)
    assert prof.total_average().count == 2
    assert prof.self_cpu_time_total > 0
    with plain.profile(enabled=False) as prof:
        clew.ones(2)
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        prof.key_averages()
    with pytest.raises(ValueError, match="use_cpu"):
        plain.profile(use_cpu=False)
    with pytest.warns(UserWarning, match="cuda is not there"):
        plain.profile(use_cuda=True)


# schedules

NONE, WARMUP, RECORD, SAVE = ProfilerAction


def test_schedule():
    rule = schedule(wait=1, warmup=2, active=2, repeat=2, skip_first=1)
    cycle = [NONE, WARMUP, WARMUP, RECORD, SAVE]
    assert [rule(i) for i in range(13)] == [NONE, *cycle, *cycle, NONE, NONE]
    rule = schedule(wait=3, warmup=1, active=1, skip_first=2, skip_first_wait=1)
    assert [rule(i) for i in range(9)] == [
        NONE, NONE, WARMUP, SAVE, NONE, NONE, NONE, WARMUP, SAVE
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="active must be above 0"):
        schedule(wait=0, warmup=1, active=0)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)
    with pytest.raises(AssertionError):
        rule(-1)


def test_on_trace_ready_is_called_at_the_end_of_each_cycle():
    seen = []

    def ready(prof):
        seen.append((prof.step_num, [e.name for e in prof.events() if e.name != "ones"]))

    x = clew.ones(2)
    rule = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=rule, on_trace_ready=ready) as prof:
        for _ in range(10):
            x + 1
            prof.step()
    assert seen == [
        (4, ["ProfilerStep#2", "add", "ProfilerStep#3", "add"]),
        (8, ["ProfilerStep#6", "add", "ProfilerStep#7", "add"]),
    ]


def test_averages_have_one_entry_for_all_steps():
    with profile(schedule=schedule(wait=0, warmup=1, active=3, repeat=1)) as prof:
        for _ in range(4):
            clew.ones(1)
            prof.step()
    rows = {row.key: row.count for row in prof.key_averages()}
    assert rows == {"ProfilerStep*": 3, "ones": 3}
    assert "ProfilerStep#" not in prof.key_averages().table()


def test_without_a_schedule_the_end_is_the_cycle():
    seen = []
    with profile(on_trace_ready=lambda p: seen.append(len(p.events()))) as prof:
        clew.ones(1)
        prof.step()
        clew.ones(1)
    assert seen == [2]


def test_a_program_that_ends_while_recording():
    seen = []
    rule = schedule(wait=0, warmup=1, active=5)
    with profile(schedule=rule, on_trace_ready=lambda p: seen.append(p.step_num)) as prof:
        prof.step()
        clew.ones(1)
    assert seen == [1]
    with profile(schedule=rule, on_trace_ready=lambda p: seen.append("warm")) as prof:
        clew.ones(1)
    assert seen == [1]
    with pytest.raises(AssertionError):
        prof.events()


def test_accumulated_events():
    rule = schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(schedule=rule, acc_events=True) as prof:
        for _ in range(4):
            clew.ones(1) + 1
            prof.step()
    assert [e.name for e in prof.events() if e.name == "add"] == ["add", "add"]
    starts = [e.time_range.start for e in prof.events()]
    assert starts == sorted(starts)
    assert [e.id for e in prof.events()] == list(range(len(starts)))


def test_steps_without_cycles_warn():
    plan = [RECORD, NONE, WARMUP, NONE]
    with profile(schedule=lambda step: plan[min(step, 3)]) as prof:
        with pytest.warns(UserWarning, match="without RECORD_AND_SAVE"):
            prof.step()
        prof.step()
        with pytest.warns(UserWarning, match="does not record"):
            prof.step()


def test_tensorboard_handler(tmp_path):
    for gzip in (False, True):
        with profile(
            on_trace_ready=tensorboard_trace_handler(str(tmp_path / "a"), "me", use_gzip=gzip)
        ):
            clew.ones(1)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(names) == 2
    assert {name.split(".")[0] for name in names} == {"me"}
    assert sorted(name.endswith(".pt.trace.json.gz") for name in names) == [False, True]
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="cannot make"):
        tensorboard_trace_handler(str(tmp_path / "file" / "b"))(None)
