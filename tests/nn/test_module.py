"""Module: attributes, members, conversion, text; containers."""

from __future__ import annotations

import collections
import copy
import gc
import pickle
import weakref

import pytest

import clew
from clew import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.scale = nn.Parameter(clew.ones(3))
        self.register_buffer("shift", clew.zeros(3))
        self.register_buffer("scratch", clew.zeros(1), persistent=False)
        self.tied = self.fc
        self.note = "plain"

    def forward(self, x, times=1):
        return (self.fc(x) * self.scale + self.shift) * times


def test_members_and_their_names():
    m = Small()
    assert [n for n, _ in m.named_parameters()] == ["scale", "fc.weight", "fc.bias"]
    assert [n for n, _ in m.named_parameters("p", remove_duplicate=False)] == [
        "p.scale", "p.fc.weight", "p.fc.bias", "p.tied.weight", "p.tied.bias",
    ]  # fmt: skip
    assert [n for n, _ in m.named_parameters(recurse=False)] == ["scale"]
    assert [n for n, _ in m.named_buffers()] == ["shift", "scratch"]
    assert [n for n, _ in m.named_children()] == ["fc"]
    assert [n for n, _ in m.named_modules()] == ["", "fc"]
    assert [n for n, _ in m.named_modules(remove_duplicate=False)] == ["", "fc", "tied"]
    assert list(m.modules()) == [m, m.fc] and list(m.children()) == [m.fc]
    assert len(list(m.parameters())) == 3 and len(list(m.buffers())) == 2
    assert m.get_submodule("fc") is m.fc and m.get_submodule("") is m
    assert m.get_parameter("fc.weight") is m.fc.weight
    assert m.get_buffer("shift") is m.shift
    assert {"fc", "scale", "shift", "note", "forward"} <= set(dir(m))


def test_assignment_moves_a_name_between_the_tables():
    m = Small()
    m.note = nn.Parameter(clew.zeros(1))
    assert "note" in m._parameters and "note" not in m.__dict__
    m.note = None
    assert m._parameters["note"] is None and "note" not in dict(m.named_parameters())
    m.extra = nn.Buffer(clew.ones(2), persistent=False)
    assert "extra" in m._buffers and "extra" not in m.state_dict()
    m.shift = clew.ones(3)
    assert m._buffers["shift"].sum() == 3
    m.child = nn.ReLU()
    m.child = None
    assert m._modules["child"] is None and repr(m)
    del m.fc, m.scale, m.shift
    assert not hasattr(m, "fc") and "scale" not in m._parameters and "shift" not in m._buffers
    m.fc = 3
    assert m.fc == 3
    m.fc = nn.ReLU()
    assert isinstance(m.fc, nn.ReLU) and "fc" not in m.__dict__


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        (lambda m: setattr(m, "scale", 3), TypeError, "cannot assign 'int' as parameter 'scale'"),
        (lambda m: setattr(m, "fc", 3), TypeError, "cannot assign 'int' as child module 'fc'"),
        (lambda m: setattr(m, "shift", 3), TypeError, "cannot assign 'int' as buffer 'shift'"),
        (lambda m: m.nothing, AttributeError, "'Small' object has no attribute 'nothing'"),
        (lambda m: delattr(m, "nothing"), AttributeError, "nothing"),
        (lambda m: m.register_parameter("a.b", None), KeyError, 'can\'t contain "."'),
        (lambda m: m.register_parameter("", None), KeyError, "can't be empty"),
        (lambda m: m.register_parameter("fc", None), KeyError, "attribute 'fc' already exists"),
        (lambda m: m.register_parameter(3, None), TypeError, "should be a string. Got int"),
        (lambda m: m.register_parameter("z", clew.ones(1)), TypeError, "nn.Parameter or None"),
        (
            lambda m: m.register_parameter("z", nn.Parameter(clew.ones(1)) * 2),
            TypeError,
            "nn.Parameter or None",
        ),
        (lambda m: m.register_buffer("z", 3), TypeError, "cannot assign 'int' object to buffer"),
        (lambda m: m.register_buffer("fc", None), KeyError, "already exists"),
        (lambda m: m.add_module("scale", nn.ReLU()), KeyError, "already exists"),
        (lambda m: m.add_module("z", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.add_module("z.z", nn.ReLU()), KeyError, 'can\'t contain "."'),
        (lambda m: m.get_submodule("fc.no"), AttributeError, "Linear has no attribute `no`"),
        (lambda m: m.get_submodule("scale"), AttributeError, "`scale` is not an nn.Module"),
        (lambda m: m.get_parameter("shift"), AttributeError, "`shift` is not an nn.Parameter"),
        (lambda m: m.get_buffer("scale"), AttributeError, "`scale` is not a buffer"),
        (lambda m: m.set_submodule("", nn.ReLU()), ValueError, "without a target name"),
        (lambda m: m.train(1), ValueError, "training mode is expected to be boolean"),
        (lambda m: m.to(clew.int64), TypeError, "floating point or complex"),
        (lambda m: m.to(3.5), TypeError, "got float"),
        (lambda m: m.to(place="cpu"), TypeError, "unexpected keyword argument 'place'"),
        (lambda m: m.cuda(), RuntimeError, "CPU only"),
        (lambda m: nn.Module()(1), NotImplementedError, 'missing the required "forward"'),
        (lambda m: nn.Module(3), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda m: nn.Module(a=3), TypeError, "unexpected keyword argument 'a'"),
        (lambda m: m.get_extra_state(), RuntimeError, "get_extra_state"),
        (lambda m: nn.Parameter(3), TypeError, "got int"),
    ],
)
def test_mistakes(what, error, text):
    with pytest.raises(error) as caught:
        what(Small())
    assert text in str(caught.value.args[0])


def test_assignment_before_init():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value
            super().__init__()

    for value, word in ((nn.Parameter(clew.ones(1)), "parameters"), (nn.ReLU(), "module")):
        with pytest.raises(AttributeError, match=f"cannot assign {word} before"):
            Early(value)
    assert Early(3).value == 3


def test_set_submodule():
    m = nn.Sequential(nn.Sequential(nn.Linear(1, 1), nn.ReLU()))
    m.set_submodule("0.1", nn.Tanh())
    assert isinstance(m[0][1], nn.Tanh)
    with pytest.raises(AttributeError):
        m.set_submodule("0.7", nn.Tanh(), strict=True)
    with pytest.raises(ValueError, match=r"not an nn.Module"):
        m.set_submodule("0.1", 3)


def test_parameter_and_buffer():
    base = clew.arange(3.0)
    p = nn.Parameter(base)
    assert isinstance(p, nn.Parameter) and isinstance(p, clew.Tensor)
    assert p.requires_grad and p.is_leaf
    assert p.data_ptr() == base.data_ptr() and not base.requires_grad
    assert not nn.Parameter(base, requires_grad=False).requires_grad
    assert nn.Parameter().numel() == 0
    assert type(p * 2) is clew.Tensor and not isinstance(base, nn.Parameter)
    assert repr(p).startswith("Parameter containing:\ntensor([0., 1., 2.]")
    p.note = "kept"
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(other) is nn.Parameter and other.note == "kept" and other.requires_grad
        assert other.tolist() == p.tolist() and other.data_ptr() != p.data_ptr()
    b = nn.Buffer(base, persistent=False)
    assert isinstance(b, nn.Buffer) and not b.persistent and not b.requires_grad
    assert copy.deepcopy(b).persistent is False


def test_assigning_a_buffer_again_says_anew_whether_it_is_saved():
    m = nn.Module()
    for persistent in (False, True, False):
        m.kept = nn.Buffer(clew.rand(2), persistent=persistent)
        assert list(m.state_dict()) == ["kept"] * persistent
    m.kept = clew.ones(3)  # a plain tensor leaves it as it was
    assert not m.state_dict() and m.get_buffer("kept").shape == (3,)
    m.plain = 5
    with pytest.raises(KeyError, match="already exists"):
        m.plain = nn.Buffer(clew.ones(1))
    assert m.plain == 5


def test_assigned_buffers_go_through_a_subclass_s_own_register_buffer():
    class Noting(nn.Module):
        def register_buffer(self, name, tensor, persistent=True):
            self.__dict__.setdefault("seen", []).append((name, persistent))
            super().register_buffer(name, tensor, persistent)

    m = Noting()
    m.a = nn.Buffer(clew.ones(1), persistent=False)
    m.a = clew.zeros(1)
    m.a = nn.Buffer(clew.ones(1))
    assert m.seen == [("a", False), ("a", False), ("a", True)]

    class Old(nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    old = Old()
    old.b = nn.Buffer(clew.ones(1))
    assert list(old.state_dict()) == ["b"]
    with pytest.raises(RuntimeError, match="no argument 'persistent'"):
        old.c = nn.Buffer(clew.ones(1), persistent=False)


def test_buffers_may_be_objects_that_answer_torch_function():
    class Like:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise NotImplementedError

    first, second = Like(), Like()
    m = nn.Module()
    m.register_buffer("b", first)
    assert m.b is first and m.get_buffer("b") is first
    m.b = second
    assert m.b is second
    with pytest.raises(TypeError, match="object to buffer"):
        m.register_buffer("c", [1])


def test_registration_hooks_run_once_for_each_assignment():
    seen = []
    note = lambda module, name, value: seen.append(name)
    handles = [
        nn.modules.module.register_module_buffer_registration_hook(note),
        nn.modules.module.register_module_module_registration_hook(note),
    ]
    try:
        m = nn.Module()
        m.b = nn.Buffer(clew.ones(1))
        m.b = clew.ones(1)
        m.c = nn.ReLU()
        m.c = None
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["b", "b", "c", "c"]


def test_shared_parameters_stay_shared_in_copies():
    m = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    m[1].weight = m[0].weight
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other[0].weight is other[1].weight and other[0].weight is not m[0].weight


def test_conversions():
    m = Small()
    weight = m.fc.weight
    assert m.double() is m and m.fc.weight is weight and weight.dtype == clew.float64
    assert m.half().fc.bias.dtype == clew.float16
    assert m.bfloat16().shift.dtype == clew.bfloat16
    assert m.float().shift.dtype == clew.float32
    assert m.to("cpu", clew.float64).fc.weight.dtype == clew.float64
    assert m.to(clew.ones(1)).fc.weight.dtype == clew.float32
    assert m.to(dtype=clew.float64).type(clew.float32).fc.weight.dtype == clew.float32
    assert m.cpu() is m
    assert m.to(None, clew.float64, True).fc.weight.dtype == clew.float64
    assert m.to(clew.float32, True).to(clew.ones(1), False).fc.weight.dtype == clew.float32
    cpu, one = clew.device("cpu"), clew.ones(1)
    for args in ((cpu, True), (None, True), (True,), (clew.float32, cpu), (cpu, cpu), (cpu, one)):
        with pytest.raises(TypeError, match="wrong place|expected a device"):
            m.to(*args)
    m.register_buffer("count", clew.tensor(3))
    m.double()
    assert m.count.dtype == clew.int64
    m(clew.ones(1, 2, dtype=clew.float64)).sum().backward()
    m.float()
    assert m.fc.weight.grad.dtype == clew.float32


def test_shared_memory_or_a_reason():
    m = Small()
    if hasattr(clew.Tensor, "share_memory_"):
        assert m.share_memory() is m and m.fc.weight.is_shared()
    else:
        with pytest.raises(NotImplementedError, match="send a state_dict"):
            m.share_memory()


def test_zero_grad_and_requires_grad():
    m = Small()
    m(clew.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert all(p.grad is not None and not p.grad.any() for p in m.parameters())
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())
    m.requires_grad_(False)
    assert not m(clew.ones(1, 2)).requires_grad


def test_apply_goes_children_first():
    seen = []
    m = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    assert m.apply(lambda x: seen.append(type(x).__name__)) is m
    assert seen == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_repr():
    assert repr(Small()) == (
        "Small(\n  (fc): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (tied): Linear(in_features=2, out_features=3, bias=True)\n)"
    )
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
    assert repr(layers) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n  (2): "
        "ReLU()\n)"
    )
    assert repr(nn.Sequential()) == "Sequential()"


def test_a_module_is_freed_without_the_collector():
    gc.disable()
    try:
        m = nn.Sequential(Small(), nn.LSTM(2, 2), nn.BatchNorm1d(2), nn.LazyLinear(3))
        refs = [weakref.ref(x) for x in m.modules()]
        del m
        assert all(ref() is None for ref in refs)
    finally:
        gc.enable()


def test_sequential():
    a, b, c = nn.Linear(1, 1), nn.ReLU(), nn.Tanh()
    s = nn.Sequential(a, b)
    assert len(s) == 2 and s[0] is a and s[-1] is b and list(s) == [a, b]
    assert isinstance(s[:1], nn.Sequential) and list(s[:1]) == [a]
    assert s.append(c) is s and list(s) == [a, b, c]
    assert s.pop(1) is b and list(s) == [a, c] and list(s._modules) == ["0", "1"]
    s.insert(0, b)
    assert list(s) == [b, a, c]
    s[1] = nn.ELU()
    assert isinstance(s[1], nn.ELU)
    del s[0]
    assert len(s) == 2 and len(s + nn.Sequential(b)) == 3 and len(s * 2) == 4 == len(2 * s)
    s += nn.Sequential(b)
    assert len(s) == 3
    s *= 2
    assert len(s) == 6
    named = nn.Sequential(collections.OrderedDict(first=a, second=b))
    assert named.first is a and list(named[1:]._modules) == ["second"]
    del named[:1]
    assert len(named) == 1
    for bad in (lambda: s[9], lambda: nn.Sequential(3), lambda: s + 3, lambda: s * 0):
        with pytest.raises((IndexError, TypeError, ValueError)):
            bad()


def test_module_list_and_dict():
    items = nn.ModuleList([nn.ReLU()])
    items.append(nn.Tanh()).extend([nn.ELU()])
    items.insert(0, nn.GELU())
    assert [type(m).__name__ for m in items] == ["GELU", "ReLU", "Tanh", "ELU"]
    assert isinstance(items[1:3], nn.ModuleList) and len(items[1:3]) == 2
    assert isinstance(items.pop(-1), nn.ELU)
    items[0] = nn.SiLU()
    del items[1]
    items += [nn.Mish()]
    assert [type(m).__name__ for m in (items + [nn.ReLU()])] == ["SiLU", "Tanh", "Mish", "ReLU"]
    with pytest.raises(IndexError, match="out of range"):
        items[9]
    with pytest.raises(NotImplementedError):
        items(1)
    d = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
    d.update([("c", nn.Tanh())])
    d["d"] = nn.ELU()
    assert list(d) == list(d.keys()) == ["a", "b", "c", "d"] and "a" in d and len(d) == 4
    assert [k for k, _ in d.named_parameters()] == ["b.weight", "b.bias"]
    assert isinstance(d.pop("a"), nn.ReLU) and "a" not in d
    assert len(d.values()) == len(d.items()) == 3
    del d["b"]
    d.clear()
    assert len(d) == 0
    with pytest.raises(TypeError):
        d.update(3)
    with pytest.raises(ValueError, match="2 is required"):
        d.update([(1, 2, 3)])
    with pytest.raises(KeyError):
        d["none"]


def test_parameter_list_and_dict():
    ps = nn.ParameterList([clew.ones(2), nn.Parameter(clew.zeros(3))])
    ps.append(clew.ones(1)).extend([clew.zeros(1)])
    assert len(ps) == 4 and all(isinstance(p, nn.Parameter) for p in ps)
    assert [n for n, _ in ps.named_parameters()] == ["0", "1", "2", "3"]
    assert isinstance(ps[1:], nn.ParameterList) and len(ps[1:]) == 3 and ps[-1].shape == (1,)
    ps[0] = clew.zeros(5)
    assert ps[0].shape == (5,) and isinstance(ps[0], nn.Parameter)
    assert "(1): Parameter containing: [clew.float32 of size 3]" in repr(ps)
    with pytest.raises(RuntimeError, match="should not be called"):
        ps(1)
    d = nn.ParameterDict({"b": clew.ones(2), "a": clew.zeros(3)})
    d["c"] = clew.ones(1)
    assert list(d.keys()) == ["a", "b", "c"] and "b" in d and len(d) == 3
    assert len(list(d.parameters())) == 3 and d.get("z") is None
    assert d.setdefault("z", clew.ones(4)).shape == (4,)
    assert d.popitem()[0] == "z" and d.pop("c").shape == (1,)
    both = d | nn.ParameterDict({"q": clew.ones(1)})
    assert list(both.keys()) == ["a", "b", "q"] and list(reversed(both)) == ["q", "b", "a"]
    assert list(nn.ParameterDict.fromkeys(["x", "y"], clew.ones(1)).keys()) == ["x", "y"]
    with pytest.raises((KeyError, AttributeError)):
        d["none"]
    d.clear()
    assert not len(d) and not list(d.parameters())


def test_dict_subclass_state_is_plain():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x

    m = Own()
    m(1)
    assert m.calls == 1 and m.__dict__["calls"] == 1


def test_attributes_of_subclasses_with_getattr_of_their_own():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    inner = nn.Linear(2, 3)
    wrapper = Wrapper(inner)
    assert wrapper.inner is inner and wrapper.weight is inner.weight
    with pytest.raises(AttributeError, match="nothing"):
        _ = wrapper.nothing


def test_a_property_that_raises_attribute_error_gives_way_to_a_member():
    class Lazy(nn.Module):
        @property
        def weight(self):
            raise AttributeError("not yet")

    module = Lazy()
    with pytest.raises(AttributeError, match="not yet"):
        _ = module.weight
    module._parameters["weight"] = nn.Parameter(clew.ones(2))
    assert module.weight.shape == (2,)


def test_call_can_be_replaced():
    class Twice(nn.Module):
        def __call__(self, x):
            return 2 * super().__call__(x)

        def forward(self, x):
            return x + 1

    module = Twice()
    assert module(1) == 4
    module.forward = lambda x: x
    assert module(1) == 2


def test_names_that_programs_give_their_own_attributes():
    """As PyTorch Geometric's Linear, which keeps a handle as `_hook`; a base's method is in the
    way of that.
    """

    class Layer(nn.Linear):
        def _forget(self):
            return "own"

        _new_name = _cast_floating = _forget

    layer = Layer(2, 2)
    assert not hasattr(nn.Linear(2, 2), "_hook")
    calls = []
    layer._hook = layer.register_forward_pre_hook(lambda m, args: calls.append(1))
    second = layer.register_forward_hook(lambda m, args, out: calls.append(2))
    layer.register_buffer("b", clew.ones(1))
    layer.bias = None
    layer.register_parameter("p", nn.Parameter(clew.ones(1)))
    layer.double()(clew.ones(1, 2).double())
    assert calls == [1, 2] and layer.p.dtype is clew.float64
    assert layer._forget() == layer._new_name() == layer._cast_floating() == "own"
    layer._hook.remove()
    second.remove()
    layer(clew.ones(1, 2).double())
    assert calls == [1, 2]


def test_a_replica_shares_modules_and_has_no_parameters():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    net.weight = nn.Parameter(clew.ones(1))
    net.register_buffer("seen", clew.zeros(1))
    replica = net._replicate_for_data_parallel()
    assert type(replica) is nn.Sequential and replica is not net and replica._is_replica
    assert not replica._parameters and net.weight.tolist() == [1.0]
    assert replica.seen is net.seen and replica[0] is net[0]
    replica.seen = clew.ones(1)
    replica.add_module("2", nn.ReLU())
    assert net.seen.tolist() == [0.0] and len(net) == 2 and len(replica) == 3
    x = clew.randn(3, 2)
    assert clew.equal(net.eval()(x), net._replicate_for_data_parallel()(x))
