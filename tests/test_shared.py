"""Memory that processes share: moving tensors there, sending them, and what is left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import sys
import textwrap
import time
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest

import clew
import clew.multiprocessing as mp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and /proc")

STRATEGIES = ["file_descriptor", "file_system"]
SHM = Path("/dev/shm")


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy("file_descriptor")


def sent(value):
    """What a process gets that is sent the value, here this one."""
    return pickle.loads(ForkingPickler.dumps(value))


def in_child(function):
    """The exit code of a forked child that runs the function."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = function() or 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def descriptors(at_most=None):
    """How many descriptors are open, once they are as few as that or two seconds are over.

    The thread that hands out descriptors closes its own after the other side has what it asked
    for, so that a count taken at once may have one or two too many.
    """
    deadline = time.monotonic() + 2
    while (count := len(os.listdir("/proc/self/fd"))) > (at_most or count):
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return count


def left_behind():
    return [f.name for f in SHM.glob("clew-*")]


def run_script(tmp_path, text, *args, timeout=120, check=True):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    # Into files: a pipe would be waited for until all who inherited it have ended.
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        run = subprocess.run(
            [sys.executable, str(script), *args], stdout=stdout, stderr=stderr, timeout=timeout
        )
    run.stdout, run.stderr = out.read_text(), err.read_text()
    assert not check or run.returncode == 0, run.stdout + run.stderr
    return run


# ---- moving --------------------------------------------------------------------------------------


def test_forked_processes_write_to_shared_memory(strategy):
    t = clew.arange(6).reshape(2, 3).t()
    plain = clew.zeros(2)
    assert t.share_memory_() is t and t.is_shared() and not plain.is_shared()
    assert t.tolist() == [[0, 3], [1, 4], [2, 5]] and t.stride() == (1, 3)
    model = clew.nn.Linear(2, 1).share_memory()

    def child():
        t[0, 0] = 7
        plain[0] = 7
        with clew.no_grad():
            model.weight.fill_(3.0)

    assert in_child(child) == 0
    assert t[0, 0].item() == 7 and plain[0].item() == 0
    assert model.weight.tolist() == [[3.0, 3.0]]
    model(clew.ones(1, 2)).sum().backward()
    assert model.weight.grad.tolist() == [[1.0, 1.0]]


def test_views_made_before_move_along():
    base = clew.zeros(10)
    view, other = base[2:6], base.detach()
    leaf = clew.nn.Parameter(base[4:])
    assert not view.is_shared()
    view.share_memory_()
    for t in (base, view, other, leaf):
        assert t.is_shared() and t.untyped_storage() == base.untyped_storage()
    base[4] = 5
    assert view.tolist() == [0, 0, 5, 0] and other[4] == 5 and leaf[0] == 5
    assert view.storage_offset() == 2 and leaf.storage_offset() == 4


def test_only_that_storage_moves():
    tensors = [clew.full((3,), float(i)) for i in range(100)]
    views = [t[1:] for t in tensors]
    tensors[50].share_memory_()
    assert [i for i, v in enumerate(views) if v.is_shared()] == [50]
    assert [v[0].item() for v in views] == list(range(100))


def test_the_recorded_graph_keeps_what_it_saved():
    x = clew.ones(3, requires_grad=True)
    y = (x * 2).exp()
    z = (y * y).sum()
    y.share_memory_()
    x.share_memory_()
    x.data.zero_()  # does not count as a change
    z.backward()
    np.testing.assert_allclose(x.grad.numpy(), 4 * np.exp(4.0) * np.ones(3), rtol=1e-6)
    a = clew.ones(3, requires_grad=True)
    b = a.exp()
    c = b.sum()
    b.share_memory_()
    view = b.detach()
    view.mul_(0)
    assert b.tolist() == [0.0, 0.0, 0.0]
    c.backward()
    np.testing.assert_allclose(a.grad.numpy(), np.exp(1.0) * np.ones(3), rtol=1e-6)


def test_numpy_arrays_keep_their_memory():
    t = clew.ones(1000)
    array = t.numpy()
    own = np.arange(3.0)
    over = clew.from_numpy(own)
    t.share_memory_()
    over.share_memory_()
    t.zero_()
    del t
    over += 1
    clew.empty_cache()
    assert array.sum() == 1000
    assert own.tolist() == [0, 1, 2] and over.tolist() == [1, 2, 3]


def test_everything_else_stays_as_it_was():
    p = clew.nn.Parameter(clew.ones(2, 3))
    version = p._version
    p.share_memory_()
    assert p.is_leaf and p.requires_grad and p._version == version
    assert p.share_memory_() is p
    assert clew.zeros(0).share_memory_().is_shared()
    assert clew.tensor(3.0).share_memory_().item() == 3
    with pytest.raises(RuntimeError, match="meta"):
        clew.ones(1, device="meta").share_memory_()
    s = p.untyped_storage()
    assert s.is_shared() and len(s) == 24


def test_shared_memory_is_not_resized():
    t = clew.ones(4).share_memory_()
    view = t[1:]
    t.resize_(2)
    with pytest.raises(RuntimeError, match="resize"):
        t.resize_(100)
    with pytest.raises(RuntimeError, match="resize"):
        view.resize_(100)
    assert view.tolist() == [1, 1, 1]


def test_gradients_are_shared_when_they_are_there():
    model = clew.nn.Linear(3, 1)
    model(clew.ones(1, 3)).sum().backward()
    model.share_memory()
    assert model.weight.grad.is_shared() and model.bias.grad.is_shared()

    def child():
        model(clew.ones(1, 3)).sum().backward()

    assert in_child(child) == 0
    assert model.weight.grad.tolist() == [[2.0, 2.0, 2.0]]
    got = sent(model)
    assert got.weight.grad.untyped_storage() == model.weight.grad.untyped_storage()
    assert sent(clew.nn.Parameter(clew.ones(1))).grad is None
    # Other pickles hold no gradient.
    assert pickle.loads(pickle.dumps(model)).weight.grad is None


# ---- sending -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [d for d in vars(clew).values() if type(d) is clew.dtype])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_what_is_sent_is_the_same_memory(strategy, dtype, shape):
    t = clew.ones(shape).to(dtype)
    got = sent(t)
    assert got.dtype is dtype and got.shape == t.shape and got.tolist() == t.tolist()
    assert got.is_shared() and t.is_shared()
    if t.numel():
        t.zero_()
        assert got.tolist() == clew.zeros(shape).to(dtype).tolist()
        assert got.untyped_storage() == t.untyped_storage()


def test_views_stay_views_of_one_storage(strategy):
    base = clew.zeros(2, 3)
    a, b, c = sent([base, base.t(), base[1]])
    a[1, 2] = 4
    assert b[2, 1] == 4 and c[2] == 4 and base[1, 2] == 4
    assert b.stride() == (1, 3)
    later = sent(base[0])  # another message
    assert later.untyped_storage() == a.untyped_storage()


def test_what_autograd_knows_is_sent():
    leaf = clew.ones(2, requires_grad=True)
    got = sent(leaf)
    assert got.requires_grad and got.is_leaf and got.grad is None
    p = sent(clew.nn.Parameter(clew.ones(2), requires_grad=False))
    assert type(p) is clew.nn.Parameter and not p.requires_grad
    buffer = sent(clew.nn.Buffer(clew.ones(2), persistent=False))
    assert type(buffer) is clew.nn.Buffer and not buffer.persistent
    with pytest.raises(RuntimeError, match=r"not a leaf.*detach"):
        ForkingPickler.dumps(leaf * 2)
    assert pickle.loads(pickle.dumps(leaf * 2)).requires_grad
    assert sent((leaf * 2).detach()).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="detach"):
        mp.reductions.reduce_tensor(leaf * 2)

    class Sub(clew.Tensor):
        pass

    globals()["Sub"] = Sub
    Sub.__qualname__ = "Sub"
    s = clew.ones(2).as_subclass(Sub)
    assert type(sent(s)) is Sub and s.is_shared()
    tied = clew.nn.Linear(2, 2)
    tied.other = tied.weight
    got = sent(tied)
    assert got.other is got.weight
    storage = clew.ones(3).untyped_storage()
    assert sent(storage) == storage


SPAWNED = """
    import multiprocessing, sys, time
    import clew                    # Python's own module, imported before

    class Model(clew.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = clew.nn.Parameter(clew.zeros(2))
            self.register_buffer("b", clew.zeros(2, dtype=clew.int64))

    def write(model, tensor, value):
        assert model.w.is_shared() and type(model.w) is clew.nn.Parameter
        with clew.no_grad():
            model.w[0] += value
        model.b[1] += 5
        tensor[:, 0] = value

    def pass_on(source, target):
        t = source.get()
        t[0] = 1
        target.put(t)
        assert source.get() is None

    def finish(source, back):
        t = source.get()
        assert t.tolist() == [1.0, 0.0, 0.0]
        t[1] = 2
        back.put(clew.arange(4))
        assert source.get() is None

    def double(t):
        t.mul_(2)
        return t, clew.ones(2)

    if __name__ == "__main__":
        method, strategy = sys.argv[1:]
        context = multiprocessing.get_context(method)
        if strategy == "file_system":
            import clew.multiprocessing
            clew.multiprocessing.set_sharing_strategy(strategy)
        model, t = Model(), clew.zeros(2, 3)
        if method == "fork":        # its arguments are not sent
            t.share_memory_()
        model.share_memory()
        child = context.Process(target=write, args=(model, t.t(), 3.0))
        child.start(); child.join()
        assert child.exitcode == 0
        assert model.w.tolist() == [3.0, 0.0] and model.b.tolist() == [0, 5], model.w
        assert t.tolist() == [[3.0, 3.0, 3.0], [0.0, 0.0, 0.0]], t

        a, b, c = context.Queue(), context.Queue(), context.SimpleQueue()
        x = clew.zeros(3)
        second = context.Process(target=pass_on, args=(a, b))
        third = context.Process(target=finish, args=(b, c))
        second.start(); third.start()
        a.put(x)
        assert c.get().tolist() == [0, 1, 2, 3]
        assert x.tolist() == [1.0, 2.0, 0.0], x
        a.put(None), b.put(None)
        second.join(); third.join()
        assert (second.exitcode, third.exitcode) == (0, 0)

        with context.Pool(1) as pool:
            ones = [clew.ones(1000) for _ in range(5)]
            for given, (got, made) in zip(ones, pool.map(double, ones)):
                assert given.eq(2).all() and got.untyped_storage() == given.untyped_storage()
                assert made.tolist() == [1.0, 1.0]
            pool.close(); pool.join()
        print("done")
"""


@pytest.mark.parametrize(
    "method", ["fork", *(pytest.param(m, marks=pytest.mark.slow) for m in ("spawn", "forkserver"))]
)
def test_processes_queues_and_pools(tmp_path, method):
    before = left_behind()
    for strategy in STRATEGIES:
        run = run_script(tmp_path, SPAWNED, method, strategy)
        assert run.stdout == "done\n" and run.stderr == ""
    assert left_behind() == before


def test_many_tensors_to_a_forkserver(tmp_path):
    run_script(
        tmp_path,
        """
        import clew, multiprocessing
        def add(tensors):
            for t in tensors:
                t.add_(1)
        if __name__ == "__main__":
            tensors = [clew.zeros(1) for _ in range(300)]
            p = multiprocessing.get_context("forkserver").Process(target=add, args=(tensors,))
            p.start(); p.join()
            assert p.exitcode == 0 and all(t.item() == 1 for t in tensors)
        """,
    )


def test_spawn_shares(tmp_path):
    run_script(
        tmp_path,
        """
        import clew, clew.multiprocessing as mp, os, signal
        def work(i, t):
            t[i] = i + 1
        def fail(i):
            raise ValueError("on purpose")
        def die(i):
            os.kill(os.getpid(), signal.SIGKILL)
        if __name__ == "__main__":
            t = clew.zeros(2)
            mp.spawn(work, (t,), nprocs=2)
            assert t.tolist() == [1.0, 2.0]
            try:
                mp.spawn(fail)
            except mp.ProcessRaisedException as error:
                assert "on purpose" in str(error)
            try:
                mp.start_processes(die, start_method="fork")
            except mp.ProcessExitedException as error:
                assert error.signal_name == "SIGKILL" and error.exit_code == -9
            else:
                raise AssertionError
        """,
    )


# ---- what is left behind -------------------------------------------------------------------------


def test_memory_and_descriptors_are_given_back(strategy):
    sent(clew.ones(1).share_memory_())  # what is opened once, by whatever sends first
    gc.collect()
    names, before = left_behind(), descriptors()
    tensors = [clew.ones(5).share_memory_() for _ in range(20)]
    got = sent(tensors)
    opened = 20 if strategy == "file_descriptor" else 0
    most = before + opened + 2  # and the tracker's
    assert before + opened <= descriptors(at_most=most) <= most
    assert len(left_behind()) - len(names) == (0 if opened else 20)
    del tensors, got
    assert descriptors(at_most=before + 2) <= before + 2 and left_behind() == names


def test_no_descriptor_is_lost_over_many_sends(strategy):
    # A resource sharer's thread and its socket come with the first.
    def count_after(n):
        for _ in range(n):
            inbox.put(clew.ones(3))
            assert outbox.get().tolist() == [2.0, 2.0, 2.0]
        return descriptors()

    def child():
        counts = []
        while (t := inbox.get()) is not None:
            outbox.put(t.add_(1))
            del t
            counts.append(descriptors())
        return min(counts[-5:]) - counts[10] > 4

    inbox, outbox = multiprocessing.SimpleQueue(), multiprocessing.SimpleQueue()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=lambda: os._exit(child()))
    process.start()
    most = count_after(20) + 4
    count_after(200)
    assert descriptors(at_most=most) <= most
    inbox.put(None)
    process.join()
    assert process.exitcode == 0


KILLED = """
    import clew, clew.multiprocessing as mp, os, signal, sys, time
    def child(inbox, ready, t):
        got = inbox.get()
        mine = [clew.ones(100).share_memory_() for _ in range(5)]
        ready.put(os.getpid())
        time.sleep(100)
    if __name__ == "__main__":
        strategy, method, who = sys.argv[1:]
        mp.set_sharing_strategy(strategy)
        context = mp.get_context(method)
        inbox, ready = context.Queue(), context.Queue()
        t = clew.zeros(3).share_memory_()
        p = context.Process(target=child, args=(inbox, ready, t))
        p.start()
        inbox.put(clew.ones(4))
        pid = ready.get()
        inbox.put(clew.ones(4))        # nobody receives it
        time.sleep(0.1)
        if who in ("child", "both"):
            os.kill(pid, signal.SIGKILL)
        if who in ("parent", "both"):
            print(pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        p.join()
        t.add_(1)
        assert t.tolist() == [1.0, 1.0, 1.0]
"""


@pytest.mark.parametrize("who", ["child", "parent", "both"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_is_left_after_kill(tmp_path, strategy, who):
    import time

    before = set(left_behind())  # other tests' may come and go meanwhile
    run = run_script(tmp_path, KILLED, strategy, "spawn", who, check=False)
    if who == "child":
        assert run.returncode == 0, run.stderr
    else:
        assert run.returncode == -signal.SIGKILL
        if who == "parent":
            os.kill(int(run.stdout), signal.SIGKILL)
    deadline = time.monotonic() + 20
    left = set(left_behind()) - before
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left &= set(left_behind())
    assert not left


def test_a_sender_that_has_ended(tmp_path):
    run_script(
        tmp_path,
        """
        import clew, clew.multiprocessing as mp, sys
        def send(connection, strategy):
            mp.set_sharing_strategy(strategy)
            connection.send(clew.ones(3))
        if __name__ == "__main__":
            context = mp.get_context("fork")
            for strategy in ("file_descriptor", "file_system"):
                if strategy == "file_system":   # before the fork: one tracker for both
                    mp.set_sharing_strategy(strategy)
                    clew.ones(1).share_memory_()
                here, there = context.Pipe()
                p = context.Process(target=send, args=(there, strategy))
                p.start(); p.join()
                if strategy == "file_system":
                    assert here.recv().tolist() == [1.0, 1.0, 1.0]
                    continue
                try:
                    here.recv()
                except RuntimeError as error:
                    assert "sender must live" in str(error), error
                else:
                    raise AssertionError
        """,
    )


def test_too_few_descriptors():
    def child():
        soft = descriptors() + 20
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
        tensors = []
        with pytest.raises(RuntimeError, match=r"too many open files.*file_system"):
            for _ in range(40):
                tensors.append(clew.ones(2).share_memory_())
        assert len(tensors) >= 10 and tensors[-1].is_shared()
        t = clew.ones(2)
        tensors.clear()
        assert t.share_memory_().tolist() == [1.0, 1.0]

    assert in_child(child) == 0


def test_too_little_memory():
    t = clew.ones(1 << 20)
    view = t[5:]

    def child():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for strategy in STRATEGIES:
            mp.set_sharing_strategy(strategy)
            before = left_behind()
            with pytest.raises(RuntimeError, match="no room for 4194304 bytes"):
                t.share_memory_()
            assert left_behind() == before
            assert not view.is_shared() and view[0].item() == 1

    assert in_child(child) == 0


def test_hostile_handles():
    with pytest.raises(RuntimeError, match="gone"):
        clew._C._attach_name("/clew-not-there", 5)
    read, write = os.pipe()
    os.close(write)
    with pytest.raises(RuntimeError, match="was sent for a storage"):
        clew._C._attach_descriptor(read, 5)
    path = SHM / f"clew-{os.getpid()}-false"
    path.write_bytes(b"x" * 4096)
    try:
        with pytest.raises(RuntimeError, match="not made by clew"):
            clew._C._attach_name("/" + path.name, 64)
        with pytest.raises(RuntimeError, match="4096 bytes"):
            clew._C._attach_name("/" + path.name, 1 << 30)
    finally:
        path.unlink()
    t = clew.ones(2)
    with pytest.raises(RuntimeError, match="not in shared memory"):
        clew._C._shared_file(t)
    with pytest.raises(TypeError):
        clew._C._share(3, "", 0)


def test_memory_without_bytes_needs_no_name(tmp_path):
    """Or the tracker of names would warn of leaks that are none, one for each empty tensor."""
    before = set(left_behind())
    run = run_script(
        tmp_path,
        """
        import clew, clew.multiprocessing as mp

        def child(queue):
            for _ in range(3):
                queue.put((clew.zeros(0, 4), clew.ones(2)[:0], clew.ones(2)))

        if __name__ == "__main__":
            mp.set_sharing_strategy("file_system")
            assert clew.zeros(0).share_memory_().is_shared()
            queue = mp.Queue()
            process = mp.Process(target=child, args=(queue,))
            process.start()
            for _ in range(3):
                empty, cut, whole = queue.get(timeout=60)
                assert empty.shape == (0, 4) and cut.shape == (0,) and whole.tolist() == [1, 1]
                del empty, cut, whole
            process.join()
            queue.close()
        """,
    )
    assert run.stderr == "" and set(left_behind()) <= before


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_sender_with_names_need_not_live(tmp_path, method):
    """The first name is made in the child; what it sent is received after its end."""
    before = set(left_behind())
    run = run_script(
        tmp_path,
        """
        import sys, clew, clew.multiprocessing as mp

        def child(queue):
            mp.set_sharing_strategy("file_system")
            for i in range(3):
                queue.put(clew.full((2,), float(i)))

        if __name__ == "__main__":
            mp.set_sharing_strategy("file_system")
            context = mp.get_context(sys.argv[1])
            queue = context.Queue()
            process = context.Process(target=child, args=(queue,))
            process.start()
            process.join()
            assert [queue.get(timeout=60)[1].item() for _ in range(3)] == [0, 1, 2]
        """,
        method,
    )
    assert run.stderr == "" and set(left_behind()) <= before


def test_strategies():
    assert mp.get_all_sharing_strategies() == set(STRATEGIES)
    assert mp.get_sharing_strategy() == "file_descriptor"
    with pytest.raises(ValueError, match="strategy"):
        mp.set_sharing_strategy("mail")
    for name in (*multiprocessing.__all__, "reductions", "queue", "pool"):
        assert hasattr(mp, name)


def test_hogwild_trains():
    example = Path(__file__).parent.parent / "examples" / "hogwild.py"
    run = subprocess.run(
        [sys.executable, str(example), "--processes", "2", "--steps", "400"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "steps of each process: [400, 400]" in run.stdout
    assert float(run.stdout.split("after: ")[1]) > 0.9
