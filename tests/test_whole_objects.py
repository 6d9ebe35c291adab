"""Files of whole modules and other objects: written by anybody, read only where one says so."""

import copy
import dataclasses
import io
import pickle

import numpy as np
import pytest

import clew
from clew import nn


@dataclasses.dataclass
class Settings:
    rate: float
    start: object


class Tagged(nn.Parameter):
    """A parameter whose construction takes more than a parameter's does."""

    def __new__(cls, data=None, tag=None, requires_grad=True):
        made = clew.Tensor._make_subclass(cls, data, requires_grad)
        made.tag = tag
        return made

    def __reduce_ex__(self, protocol):
        return Tagged, (self.detach(), self.tag)


def saved(value):
    file = io.BytesIO()
    clew.save(value, file)
    return file.getvalue()


def test_a_module_comes_back_only_when_the_file_is_trusted():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.LSTM(2, 3))
    model[0].tied = model[0].weight
    model.eval()
    data = saved(model)
    for weights_only in (None, True):
        with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
            clew.load(io.BytesIO(data), weights_only=weights_only)
    back = clew.load(io.BytesIO(data), weights_only=False)
    x = clew.randn(4, 3)
    assert clew.equal(back[:2](x), model[:2](x)) and back[0].tied is back[0].weight
    assert clew.equal(back[2](x[:, :2])[0], model[2](x[:, :2])[0])
    with pytest.raises(pickle.UnpicklingError):
        clew.load(io.BytesIO(data))


def test_other_objects_beside_tensors(tmp_path):
    shared = clew.arange(4.0)
    given = {"settings": Settings(0.1, shared[1:]), "state": {"w": shared}, "n": np.float64(2)}
    clew.save(given, tmp_path / "x.pt")
    back = clew.load(tmp_path / "x.pt", weights_only=False)
    assert back["settings"].rate == 0.1 and back["n"] == 2
    back["state"]["w"][2] = 9
    assert back["settings"].start.tolist() == [1, 9, 3]  # of one storage, as before
    # Plain data is read in the safe way, trusted or not.
    assert clew.load(io.BytesIO(saved({"a": 1})), weights_only=False) == {"a": 1}


def test_parameters_whose_construction_takes_more():
    p = Tagged(clew.ones(2), tag="x")
    q = copy.deepcopy(p)
    assert q.tag == "x" and type(q) is Tagged and q.requires_grad
    m = nn.Module()
    m.p = p
    m.to(clew.float64)
    assert m.p is p and m.p.tag == "x" and p.dtype is clew.float64
    assert clew.load(io.BytesIO(saved(p)), weights_only=False).tag == "x"
