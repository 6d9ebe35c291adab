"""FloatTensor and the like, storages, and the types of graph nodes."""

import inspect
import sys

import numpy as np
import pytest

import clew
from clew import nn


def test_types_by_dtype():
    assert clew.FloatTensor(2, 3).shape == (2, 3) and clew.FloatTensor().numel() == 0
    assert clew.LongTensor([[1, 2]]).tolist() == [[1, 2]]
    assert clew.LongTensor([1]).dtype is clew.int64
    assert clew.DoubleTensor(np.ones(2)).dtype is clew.float64
    assert clew.FloatTensor(clew.Size([2])).shape == (2,)
    assert isinstance(clew.ones(1), clew.FloatTensor)
    assert not isinstance(clew.ones(1), clew.LongTensor) and not isinstance(1, clew.FloatTensor)
    assert clew.ones(1).type(clew.LongTensor).dtype is clew.int64
    assert clew.ones(1).type("torch.LongTensor").dtype is clew.int64

    def annotated(x: clew.ByteTensor) -> clew.HalfTensor: ...

    with pytest.raises(TypeError, match="dtype"):
        clew.FloatTensor(clew.ones(1).long())
    with pytest.raises(TypeError, match="sequence"):
        clew.FloatTensor(2.0)
    assert not isinstance(clew.ones(1), clew.cuda.FloatTensor)
    for use in (
        lambda: clew.cuda.FloatTensor(2),
        lambda: clew.ones(1).type("torch.cuda.FloatTensor"),
    ):
        with pytest.raises((TypeError, RuntimeError), match="CUDA"):
            use()


def test_default_tensor_type():
    try:
        clew.set_default_tensor_type(clew.DoubleTensor)
        assert clew.ones(1).dtype is clew.float64
        clew.set_default_tensor_type("torch.FloatTensor")
        assert clew.ones(1).dtype is clew.float32
        with pytest.raises(TypeError, match="invalid type"):
            clew.set_default_tensor_type("torch.cuda.FloatTensor")
    finally:
        clew.set_default_dtype(clew.float32)


def test_nodes_have_types_of_their_names():
    x = clew.ones(2, requires_grad=True)
    y = x * 2
    node, (leaf, _) = y.grad_fn, y.grad_fn.next_functions[0]
    assert type(node).__name__ == "MulBackward0" and type(leaf).__name__ == "AccumulateGrad"
    assert isinstance(node, clew.autograd.graph.Node) and leaf.variable is x
    assert type((x * 3).grad_fn) is type(node) and type((x + 1).grad_fn) is not type(node)
    assert clew._C._node_type("AccumulateGrad") is type(leaf)


def test_untyped_storages():
    x = clew.arange(4.0)
    s = x[1:].untyped_storage()
    assert len(s) == 16 and s.data_ptr() == x.data_ptr() and s == x.untyped_storage()
    part = s[4:12]
    assert clew.asarray(part, dtype=clew.float32).tolist() == [1, 2]
    clew.asarray(part, dtype=clew.float32)[0] = 7  # the same memory
    assert x[1] == 7 and clew.empty(0).set_(part, 1, (1,)).tolist() == [2]
    assert bytes(clew.UntypedStorage([1, 2, 255])) == b"\x01\x02\xff"
    s.fill_(0)
    assert x.eq(0).all()
    y = clew.tensor([1, 256], dtype=clew.int16)
    y.untyped_storage().byteswap(clew.int16)
    assert y.tolist() == [256, 1]
    with pytest.raises(RuntimeError, match="step"):
        s[::2]


def test_typed_storages(tmp_path):
    t = clew.tensor([1, 2, 3]).storage()
    assert t.tolist() == [1, 2, 3] and t[1] == 2 and len(t) == 3 and t.dtype is clew.int64
    assert isinstance(t, clew.LongStorage) and not isinstance(t, clew.FloatStorage)
    assert t.float().dtype is clew.float32 and t.untyped().nbytes() == 24
    assert clew.is_storage(t) and clew.FloatStorage([1, 2]).tolist() == [1.0, 2.0]
    (tmp_path / "x").write_bytes(np.arange(3, dtype=np.float32).tobytes())
    mapped = clew.FloatStorage.from_file(str(tmp_path / "x"), size=3)
    mapped[0] = 5.0
    assert mapped.tolist() == [5, 1, 2]
    assert np.fromfile(tmp_path / "x", np.float32)[0] == 0  # only this process's copy changed
    clew.from_file(str(tmp_path / "x"), shared=True, size=4)[3] = 9
    assert np.fromfile(tmp_path / "x", np.float32).tolist() == [0, 1, 2, 9]
    with pytest.raises(RuntimeError, match="bytes"):
        clew.from_file(str(tmp_path / "x"), size=100)


def test_the_size_of_a_storage_counts_its_bytes():
    x = clew.zeros(4, 3)
    for s in (x.untyped_storage(), x[:, :1].untyped_storage(), x.storage()):
        empty = type(s)(0) if isinstance(s, clew.UntypedStorage) else clew.zeros(0).storage()
        assert sys.getsizeof(s) - sys.getsizeof(empty) == s.nbytes() == 48


def test_a_module_has_a_signature():
    names = list(inspect.signature(nn.Linear(2, 2)).parameters)
    assert names == ["args", "kwargs"]
    assert "in_features" in inspect.signature(nn.Linear).parameters


def test_optimizers_that_wrap_another():
    class Wrapper(clew.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    w = clew.ones(1, requires_grad=True)
    opt = Wrapper(clew.optim.SGD([w], lr=0.5))
    (w * 2).backward()
    opt.step()
    assert w.item() == 0


def test_a_divergence_of_classes_that_are_no_distributions():
    class Delta:
        pass

    @clew.distributions.register_kl(Delta, clew.distributions.Normal)
    def rule(p, q):
        return clew.tensor(3.0)

    normal = clew.distributions.Normal(0.0, 1.0)
    assert clew.distributions.kl_divergence(Delta(), normal) == 3


def test_numbers_that_name_tensors():
    layer = nn.Linear(2, 2)
    assert isinstance(layer.weight._cdata, int)
    assert layer.weight._cdata == next(layer.parameters())._cdata != layer.bias._cdata


def test_bytes_become_elements_one_by_one():
    bytes_ = clew.UntypedStorage([0, 128, 255, 63])
    for name, dtype, expected in [
        ("float", clew.float32, [0.0, 128.0, 255.0, 63.0]),
        ("double", clew.float64, [0.0, 128.0, 255.0, 63.0]),
        ("half", clew.float16, [0.0, 128.0, 255.0, 63.0]),
        ("long", clew.int64, [0, 128, 255, 63]),
        ("char", clew.int8, [0, -128, -1, 63]),
        ("byte", clew.uint8, [0, 128, 255, 63]),
        ("bool", clew.bool, [False, True, True, True]),
        ("complex_float", clew.complex64, [0j, 128 + 0j, 255 + 0j, 63 + 0j]),
        ("float8_e5m2", clew.float8_e5m2, [0.0, 128.0, 256.0, 64.0]),
    ]:
        made = getattr(bytes_, name)()
        assert type(made) is clew.TypedStorage and made.dtype is dtype
        assert made.tolist() == expected
        made.fill_(1)
        assert bytes_.tolist() == [0, 128, 255, 63]  # a copy, also of bytes
    assert bytes_.type(clew.UntypedStorage) is bytes_
    assert bytes_.type(bytes_.type()) is bytes_
    assert bytes_.new().tolist() == [] and bytes_.resizable() and bytes_.float().resizable()
    with pytest.raises(TypeError, match=r"\.float\(\)"):
        bytes_.type(clew.FloatStorage)


def test_storages_print_a_value_a_line():
    kind = "[clew.storage.TypedStorage(dtype=clew.float64, device=cpu) of size 2]"
    assert str(clew.tensor([1.5, 2.0], dtype=clew.float64).storage()) == f" 1.5\n 2.0\n{kind}"
