"""state_dict and load_state_dict: names, strictness, messages, hooks, extra state."""

from __future__ import annotations

import pytest

import clew
from clew import nn


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def test_names_prefix_and_metadata():
    state = net().state_dict(prefix="net.")
    assert list(state) == [
        "net.0.weight", "net.0.bias", "net.1.weight", "net.1.bias", "net.1.running_mean",
        "net.1.running_var", "net.1.num_batches_tracked",
    ]  # fmt: skip
    assert state._metadata["net.1"] == {"version": 2} and state._metadata["net"] == {"version": 1}
    m = net()
    assert not m.state_dict()["0.weight"].requires_grad
    assert m.state_dict(keep_vars=True)["0.weight"] is m[0].weight
    assert m.state_dict()["0.weight"].data_ptr() == m[0].weight.data_ptr()
    into = {}
    assert m.state_dict(destination=into) is into and len(into) == 7
    with pytest.warns(FutureWarning):
        assert next(iter(m.state_dict({}, "p."))) == "p.0.weight"


def test_load_copies_in_place():
    a, b = net(), net()
    weight = b[0].weight
    b.load_state_dict(a.state_dict())
    assert b[0].weight is weight and b[0].weight.tolist() == a[0].weight.tolist()
    assert b[0].weight.data_ptr() != a[0].weight.data_ptr()


def test_load_by_assignment():
    m = nn.Linear(2, 2)
    m.weight.requires_grad_(False)
    given = clew.ones(2, 2, dtype=clew.float64)
    m.load_state_dict({"weight": given, "bias": m.bias.detach()}, assign=True)
    assert m.weight.dtype == clew.float64 and m.weight.data_ptr() == given.data_ptr()
    assert isinstance(m.weight, nn.Parameter) and not m.weight.requires_grad
    empty = nn.Linear(2, 2, device="meta")
    empty.load_state_dict(nn.Linear(2, 2).state_dict(), assign=True)
    assert not empty.weight.is_meta and empty(clew.ones(2)).shape == (2,)
    empty = nn.Linear(2, 2, device="meta")
    with pytest.warns(UserWarning, match="for (weight|bias): .* assign=True"):
        empty.load_state_dict(nn.Linear(2, 2).state_dict())
    assert empty.weight.is_meta


def test_missing_unexpected_and_mismatched():
    m = net()
    state = m.state_dict()
    del state["0.bias"]
    state["what"] = clew.ones(1)
    state["1.weight"] = clew.ones(9)
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n\t"
        'Missing key(s) in state_dict: "0.bias". \n\t'
        'Unexpected key(s) in state_dict: "what". \n\t'
        "size mismatch for 1.weight: copying a param with shape clew.Size([9]) from checkpoint, "
        "the shape in current model is clew.Size([3])."
    )
    state["1.weight"] = clew.ones(3)
    found = m.load_state_dict(state, strict=False)
    assert found.missing_keys == ["0.bias"] and found.unexpected_keys == ["what"]
    assert repr(m.load_state_dict(m.state_dict())) == "<All keys matched successfully>"
    with pytest.raises(TypeError, match="dict-like"):
        m.load_state_dict(3)
    with pytest.raises(RuntimeError, match=r'parameter named "0.weight", expected a Tensor'):
        m.load_state_dict({**m.state_dict(), "0.weight": 3})


def test_batch_norm_takes_states_without_the_count():
    m = nn.BatchNorm1d(2)
    state = dict(m.state_dict())
    del state["num_batches_tracked"]
    m.num_batches_tracked.fill_(5)
    m.load_state_dict(state)
    assert m.num_batches_tracked.item() == 5


def test_extra_state():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state):
            self.n = state["n"]

    a, b = nn.Sequential(Counts()), nn.Sequential(Counts())
    a[0].n = 7
    assert a.state_dict()["0._extra_state"] == {"n": 7}
    b.load_state_dict(a.state_dict())
    assert b[0].n == 7
    with pytest.raises(RuntimeError, match="Missing key"):
        b.load_state_dict({})
    with pytest.raises(RuntimeError, match="Unexpected key"):
        nn.Sequential(nn.ReLU()).load_state_dict(a.state_dict())


def test_hooks_of_states():
    m, seen = nn.Linear(1, 1), []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: seen.append(("pre", prefix, keep)))
    m.register_state_dict_post_hook(lambda mod, sd, prefix, meta: sd.update(more=1))
    state = nn.Sequential(m).state_dict()
    assert state["more"] == 1 and seen == [("pre", "0.", False)]
    del state["more"]

    def rename(mod, sd, prefix, *rest):
        sd[prefix + "weight"] = sd.pop(prefix + "w")

    def forget(mod, keys):
        keys.missing_keys.clear()

    target = nn.Linear(1, 1)
    target.register_load_state_dict_pre_hook(rename)
    handle = target.register_load_state_dict_post_hook(forget)
    target.load_state_dict({"w": clew.full((1, 1), 3.0)})
    assert target.weight.item() == 3
    handle.remove()
    with pytest.raises(RuntimeError, match="Missing key"):
        target.load_state_dict({"w": clew.full((1, 1), 3.0)})
    bad = nn.Linear(1, 1)
    bad.register_state_dict_post_hook(lambda *a: 3)
    with pytest.raises(RuntimeError, match="must return None"):
        bad.state_dict()
    bad = nn.Linear(1, 1)
    bad.register_load_state_dict_post_hook(lambda *a: 3)
    with pytest.raises(AssertionError, match="not expected to return"):
        bad.load_state_dict(target.state_dict())


def test_a_number_loads_from_one_element():
    class One(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(clew.tensor(0.0))

    m = One()
    m.load_state_dict({"p": clew.tensor([4.0])})
    assert m.p.item() == 4


def test_consume_prefix():
    from clew.nn.modules.utils import consume_prefix_in_state_dict_if_present

    state = nn.Sequential(nn.Linear(1, 1)).state_dict(prefix="module.")
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"] and "0" in state._metadata
