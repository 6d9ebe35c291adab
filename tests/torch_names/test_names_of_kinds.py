"""Functions, exceptions and settings that only PyTorch's programs ask for."""

import pickle

import numpy as np
import pytest

import clew
from clew import nn
from clew._torch import _VF, _more, kinds, recurrent


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_functions_are_the_layers(kind, bias):
    m = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True, bias=bias)
    x, h = clew.randn(5, 2, 3), clew.randn(4, 2, 4)
    hx = (h, h * 2) if kind == "LSTM" else h
    run = {"RNN": recurrent.rnn_tanh, "GRU": recurrent.gru, "LSTM": recurrent.lstm}[kind]
    settings = bias, 2, 0.0, False, True
    out, last = m(x, hx)
    got = run(x, hx, m._flat_weights, *settings, False)
    for a, b in zip(got, (out, *last) if kind == "LSTM" else (out, last), strict=True):
        assert clew.equal(a, b)
    named = run(x.transpose(0, 1), hx, m._flat_weights, *settings, batch_first=True)
    assert clew.equal(named[0].transpose(0, 1), out)
    packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    want = m(packed, hx)[0].data
    assert clew.equal(run(*packed[:2], hx, m._flat_weights, *settings)[0], want)
    with pytest.raises(TypeError, match="expected the arguments"):
        run(x, hx, m._flat_weights, *settings)
    with pytest.raises(TypeError, match="batch_sizes, hx"):
        run(*packed[:2], hx, m._flat_weights, *settings, False)


def test_projections_and_pairs():
    m, x = nn.LSTM(3, 4, proj_size=2), clew.randn(5, 2, 3)
    states = clew.zeros(1, 2, 2), clew.zeros(1, 2, 4)
    settings = True, 1, 0.0, False, False, False
    out, _, c = _VF.lstm(x, states, m._flat_weights, *settings)
    assert clew.equal(out, m(x)[0]) and c.shape == (1, 2, 4)
    with pytest.raises(RuntimeError, match="a pair"):
        _VF.lstm(x, states[:1], m._flat_weights, *settings)
    with pytest.raises(RuntimeError, match="got none"):
        _VF.lstm(x, states, [], *settings)


def test_cells():
    x, h = clew.randn(2, 3), clew.randn(2, 4)
    lstm, gru, rnn = nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4, nonlinearity="relu")
    for a, b in zip(_VF.lstm_cell(x, (h, h), *lstm.parameters()), lstm(x, (h, h)), strict=True):
        assert clew.equal(a, b)
    assert clew.equal(_VF.gru_cell(x, h, *gru.parameters()), gru(x, h))
    assert clew.equal(_VF.rnn_relu_cell(x, h, *rnn.parameters()), rnn(x, h))
    plain = nn.RNNCell(3, 4, bias=False)
    assert clew.equal(_VF.rnn_tanh_cell(x, h, *plain.parameters()), plain(x, h))
    assert _VF.add is clew.add
    with pytest.raises(AttributeError, match="no function 'Tensor'"):
        _VF.Tensor  # noqa: B018


def test_kinds():
    assert issubclass(kinds.AcceleratorError, RuntimeError)
    assert not issubclass(kinds.FatalError, RuntimeError)
    assert repr(kinds.per_tensor_affine) == "torch.per_tensor_affine"
    assert pickle.loads(pickle.dumps(kinds.per_tensor_affine)) is kinds.per_tensor_affine
    assert int(kinds.Tag.pt2_compliant_tag) == 17
    assert not isinstance(3, kinds.Graph)
    with pytest.raises(NotImplementedError, match=r"^torch\.quantize_per_tensor: there are no"):
        kinds.quantize_per_tensor(clew.ones(2), 1.0, 0, clew.qint8)


def test_ranges_of_sizes():
    assert kinds.sym_constrain_range(3, min=3, max=3) is None
    assert kinds.sym_constrain_range_for_size(0) is None
    for call in (
        lambda: kinds.sym_constrain_range(3, min=4),
        lambda: kinds.sym_constrain_range_for_size(-1),
        lambda: kinds.sym_constrain_range_for_size(5, max=4),
    ):
        with pytest.raises(RuntimeError, match="Invalid value range for"):
            call()
    with pytest.raises(RuntimeError, match="must be greater than 2"):
        kinds.sym_constrain_range_for_size(1, max=2)


def test_preferred_libraries():
    preferred = _more.find("backends.cuda", "preferred_linalg_library")
    assert preferred().name == preferred("default").name == "Default"
    with pytest.raises(RuntimeError, match="Magma needs a CUDA device"):
        preferred("magma")
    with pytest.raises(RuntimeError, match="choose from default, cusolver, magma"):
        preferred("mkl")
    allow = _more.find("backends.cuda", "allow_fp16_bf16_reduction_math_sdp")
    allowed = _more.find("backends.cuda", "fp16_bf16_reduction_math_sdp_allowed")
    allow(False)
    assert allowed() is False
    allow(True)


def test_memory_by_older_names():
    with pytest.warns(FutureWarning, match="renamed to `torch.cuda.max_memory_reserved`"):
        assert _more.find("cuda", "max_memory_cached")() == 0
    with pytest.raises(AssertionError, match="set_sync_debug_mode: there is no CUDA device"):
        _more.find("cuda", "set_sync_debug_mode")("warn")


def test_arguments_of_tensors():
    pick = _more.find("nn", "factory_kwargs")
    assert pick(None) == {}
    given = {"factory_kwargs": {"device": "cpu"}, "dtype": clew.float64}
    assert pick(given) == {"device": "cpu", "dtype": clew.float64}
    with pytest.raises(TypeError, match="unexpected kwargs"):
        pick({"bias": True})
    with pytest.raises(TypeError, match="device specified twice"):
        pick({"device": "cpu", "factory_kwargs": {"device": "cpu"}})


def test_compilers_of_scripts():
    fuser = _more.find("jit", "fuser")
    with fuser("fuser1"):
        pass
    with pytest.raises(ValueError, match="got 'fuser9'"), fuser("fuser9"):
        pass
    with pytest.warns(UserWarning, match="script mode"), _more.find("jit", "strict_fusion")():
        pass


def test_functions_of_arrays():
    double = _more.find("compiler", "wrap_numpy")(lambda x, *, by: (np.sin(x) * by, by))
    got, by = double(clew.ones(2), by=3)
    np.testing.assert_allclose(got.numpy(), 3 * np.sin(np.ones(2)), rtol=1e-6)
    assert by == 3
    keeps = _more.find("compiler", "skip_guard_on_all_nn_modules_unsafe")
    assert keeps([1, 2]) == [True, True]


def test_inplace_functions():
    class Sign(_more.find("autograd.function", "InplaceFunction")):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.sign_()

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = clew.tensor([-2.0, 3.0], requires_grad=True)
    y = Sign.apply(x * 1)
    y.sum().backward()
    assert y.tolist() == [-1.0, 1.0] and x.grad.tolist() == [1.0, 1.0]


def test_names_by_import():
    assert _more.find("functional", "Tensor") is clew.Tensor
    assert _more.find("utils.data.dataloader", "dist") is clew.distributed
    assert _more.find("distributions.kl", "Normal") is clew.distributions.Normal
    with pytest.raises(AttributeError):
        _more.find("functional", "Dataset")
    takes_over = _more.find("nn.functional", "has_torch_function_variadic")
    assert not takes_over(clew.ones(1), 3)


def test_operators_by_names_of_python_2():
    x = clew.tensor([3.0])
    assert x.__div__(2).item() == 1.5 and x.__rdiv__(6).item() == 2
    assert x.__idiv__(2) is x and x.__long__() == 1 and x.__nonzero__() is True
