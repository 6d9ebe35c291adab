"""Devices and dtypes that are not here: they can be named and compared, and hold no tensors."""

import pickle

import pytest

import clew
from clew import nn


def test_devices_are_names():
    cuda = clew.device("cuda:1")
    assert (cuda.type, cuda.index, str(cuda)) == ("cuda", 1, "cuda:1")
    assert cuda == clew.device("cuda", 1) and cuda != clew.device("cuda") != clew.device("cpu")
    assert clew.device("mps") != clew.device("cuda") and clew.ones(1).device != clew.device("cuda")
    assert len({clew.device("cuda"), clew.device("cuda"), clew.device("xpu")}) == 2
    assert pickle.loads(pickle.dumps(cuda)) == cuda and repr(cuda) == (
        "device(type='cuda', index=1)"
    )
    with pytest.raises(RuntimeError, match="foo"):
        clew.device("foo")


@pytest.mark.parametrize(
    "use",
    [
        lambda d: clew.zeros(1, device=d),
        lambda d: clew.ones(1).to(d),
        lambda d: clew.ones(1).to(device=d, dtype=clew.float64),
        lambda d: nn.Linear(1, 1).to(d),
        lambda d: nn.Linear(1, 1, device=d),
        lambda d: clew.set_default_device(d),
        lambda d: d.__enter__(),
    ],
)
@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_memory_there_cannot_be_had(use, name):
    with pytest.raises(RuntimeError, match=f"there is no '{name}' device"):
        use(clew.device(name))
    assert clew.ones(1).device == clew.device("cpu")


def test_dtypes_without_tensors():
    kind = clew.float4_e2m1fn_x2
    assert kind.itemsize == 1 and kind.is_floating_point and repr(kind) == "clew.float4_e2m1fn_x2"
    assert pickle.loads(pickle.dumps(kind)) is kind and kind is not clew.qint8
    for use in (lambda: clew.zeros(1, dtype=kind), lambda: clew.ones(1).to(clew.qint8)):
        with pytest.raises(NotImplementedError, match="no tensors"):
            use()
