"""Groups of one process, futures, modes, quasi-random points, 8 bits."""

import threading

import numpy as np
import pytest
from scipy.stats import qmc

import clew
import clew.distributed as dist
from clew import nn
from clew._torch import _more


@pytest.fixture
def group():
    dist.init_process_group("gloo", world_size=1, rank=0)
    yield
    dist.destroy_process_group()


def test_collectives_of_one(group):
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    x = clew.arange(3.0)
    dist.all_reduce(x)
    out = [clew.zeros(3)]
    work = dist.all_gather(out, x, async_op=True)
    assert work.wait() and out[0].tolist() == [0, 1, 2]
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}] and dist.new_group([0]).size() == 1
    mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    assert mesh["tp"].size() == 1 and mesh.get_coordinate() == (0, 0)
    with pytest.raises(ValueError, match="no other process"):
        dist.send(x, 1)
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo")


def test_the_earlier_name_of_a_global_rank(group):
    earlier = _more.find("distributed.distributed_c10d", "_get_global_rank")
    with pytest.warns(FutureWarning, match="use get_global_rank"):
        assert earlier(dist.group.WORLD, 0) == 0


def test_more_processes_raise():
    with pytest.raises(RuntimeError, match="clew launch|pip install mpi4py mpich"):
        dist.init_process_group("gloo", world_size=2, rank=0)
    with pytest.raises(RuntimeError, match="other"):
        dist.init_process_group("other", world_size=1, rank=0)
    with pytest.raises(ValueError, match="initialized"):
        dist.get_rank()
    with pytest.raises(ValueError, match="initialized"):
        nn.parallel.DistributedDataParallel(nn.Linear(1, 1))


def test_parallel_modules_of_one(group):
    inner = nn.Linear(2, 1)
    model = nn.parallel.DistributedDataParallel(inner)
    with model.no_sync():
        model(clew.ones(1, 2)).sum().backward()
    assert inner.weight.grad.tolist() == [[1, 1]] and "module.weight" in model.state_dict()
    told = model._get_ddp_logging_data()
    assert (told["backend_name"], told["world_size"], told["rank"]) == ("gloo", 1, 0)
    assert (told["module_name"], told["num_parameter_tensors"]) == ("Linear", 2)
    assert told["total_parameter_size_bytes"] == 12 and not told.get("can_set_static_graph")


def test_futures():
    f = clew.futures.Future()
    g = f.then(lambda done: done.value() + 1)
    threading.Timer(0.05, f.set_result, [1]).start()
    assert g.wait() == 2 and clew.futures.wait_all([f, g]) == [1, 2]
    bad = clew.futures.Future()
    bad.set_exception(ValueError("x"))
    with pytest.raises(ValueError, match="x"):
        bad.wait()
    with pytest.raises(RuntimeError, match="set already"):
        f.set_result(2)


def test_a_mode_sees_calls_and_is_gone_afterwards():
    class Doubles(clew.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    seen = []
    x = clew.ones(2)
    add = clew.Tensor.__dict__["__add__"]
    with Doubles():
        y = (x + 1).sum() * 2
        clew.relu(y)
    assert seen == ["add", "sum", "mul", "relu"] and y == 8
    assert clew.Tensor.__dict__["__add__"] is add and (x + 1).tolist() == [2, 2] and len(seen) == 4


def test_sobol_points():
    want = qmc.Sobol(4, scramble=False).random(16)
    engine = clew.quasirandom.SobolEngine(4)
    assert np.allclose(engine.draw(5).numpy(), want[:5])
    assert np.allclose(engine.fast_forward(3).draw(8).numpy(), want[8:])
    assert np.allclose(engine.reset().draw_base2(3).numpy(), want[:8])
    mixed = clew.quasirandom.SobolEngine(2, scramble=True, seed=1).draw(4096)
    assert clew.allclose(mixed.mean(0), clew.full((2,), 0.5), atol=1e-3)
    boxes = (mixed[:256] * 16).floor().long()
    assert len({tuple(b) for b in boxes.tolist()}) == 256  # one in each of 16 x 16 boxes


def test_weights_of_8_bits():
    clew.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
    small = clew.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=clew.qint8)
    x = clew.randn(64, 16)
    assert small[0].weight().dtype is clew.int8 and isinstance(model[0], nn.Linear)
    error = (small(x) - model(x)).abs().max() / model(x).abs().max()
    assert 0 < error < 0.03
    with pytest.warns(UserWarning, match="no form of fewer bits for ReLU"):
        same = clew.ao.quantization.quantize_dynamic(model, {nn.ReLU})
    assert [type(m) for m in same] == [type(m) for m in model]


def test_lists_of_tensors():
    xs = [clew.ones(2), clew.full((1,), 4.0)]
    assert [t.tolist() for t in clew._foreach_add(xs, 1)] == [[2, 2], [5]]
    clew._foreach_mul_(xs, [2.0, 3.0])
    clew._foreach_addcdiv_(xs, xs, xs, 0.5)
    assert [t.tolist() for t in xs] == [[2.5, 2.5], [12.5]]
    assert [t.item() for t in clew._foreach_norm([clew.tensor([3.0, 4.0])])] == [5]
    with pytest.raises(RuntimeError, match="same number"):
        clew._foreach_add(xs, [1.0])
