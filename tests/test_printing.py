"""What tensors look like: golden texts, options, suffixes."""

import math

import pytest

import clew


@pytest.fixture(autouse=True)
def _default_options():
    clew.set_printoptions(profile="default")
    yield
    clew.set_printoptions(profile="default")


def ramp(*shape):
    n = math.prod(shape)
    return clew.arange(n).reshape(*shape)


GOLDEN = [
    (lambda: clew.tensor(3), "tensor(3)"),
    (lambda: clew.tensor(2.5), "tensor(2.5000)"),
    (lambda: clew.tensor(2.0), "tensor(2.)"),
    (lambda: clew.tensor(True), "tensor(True)"),
    (lambda: clew.tensor(1e-5), "tensor(1.0000e-05)"),
    (lambda: clew.tensor(123456789.0), "tensor(1.2346e+08)"),
    (lambda: clew.tensor(1 - 2j), "tensor(1.-2.j)"),
    (lambda: clew.tensor([]), "tensor([])"),
    (lambda: clew.zeros(2, 0), "tensor([], size=(2, 0))"),
    (lambda: clew.zeros(0, dtype=clew.int64), "tensor([], dtype=clew.int64)"),
    (lambda: clew.tensor([1, -20, 300]), "tensor([  1, -20, 300])"),
    (lambda: clew.tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (lambda: clew.tensor([1.0, 2.5, -0.125]), "tensor([ 1.0000,  2.5000, -0.1250])"),
    (lambda: clew.tensor([0.0, -0.0]), "tensor([0., -0.])"),
    (lambda: clew.tensor([1.0, math.nan, math.inf, -math.inf]), "tensor([1., nan, inf, -inf])"),
    (lambda: clew.tensor([1.5, math.nan, -math.inf]), "tensor([1.5000,    nan,   -inf])"),
    (lambda: clew.tensor([math.nan, math.inf]), "tensor([nan, inf])"),
    (lambda: clew.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
    (lambda: clew.tensor([1.0, 10000.0]), "tensor([1.0000e+00, 1.0000e+04])"),
    (lambda: clew.tensor([1.0, 1000.0]), "tensor([   1., 1000.])"),
    (lambda: clew.tensor([0.5, 500.5]), "tensor([5.0000e-01, 5.0050e+02])"),
    (lambda: clew.tensor([True, False]), "tensor([ True, False])"),
    (lambda: clew.tensor([1, 2], dtype=clew.int8), "tensor([1, 2], dtype=clew.int8)"),
    (lambda: clew.ones(2, dtype=clew.float64), "tensor([1., 1.], dtype=clew.float64)"),
    (lambda: clew.ones(1, dtype=clew.bfloat16), "tensor([1.], dtype=clew.bfloat16)"),
    (lambda: clew.full((1,), 0.1, dtype=clew.float16), "tensor([0.1000], dtype=clew.float16)"),
    (lambda: clew.tensor([1.5 + 2j, -1 - 0.25j]), "tensor([ 1.5000+2.0000j, -1.0000-0.2500j])"),
    (
        lambda: clew.ones(1, dtype=clew.complex128),
        "tensor([1.+0.j], dtype=clew.complex128)",
    ),
    (lambda: ramp(2, 3), "tensor([[0, 1, 2],\n        [3, 4, 5]])"),
    (
        lambda: ramp(2, 2, 2),
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])",
    ),
    (
        lambda: ramp(2, 1, 1, 2),
        "tensor([[[[0, 1]]],\n\n\n        [[[2, 3]]]])",
    ),
    (lambda: ramp(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (
        lambda: ramp(8, 200),
        "tensor([[   0,    1,    2,  ...,  197,  198,  199],\n"
        "        [ 200,  201,  202,  ...,  397,  398,  399],\n"
        "        [ 400,  401,  402,  ...,  597,  598,  599],\n"
        "        ...,\n"
        "        [1000, 1001, 1002,  ..., 1197, 1198, 1199],\n"
        "        [1200, 1201, 1202,  ..., 1397, 1398, 1399],\n"
        "        [1400, 1401, 1402,  ..., 1597, 1598, 1599]])",
    ),
    (
        lambda: ramp(30) * 1.5,
        "tensor([ 0.0000,  1.5000,  3.0000,  4.5000,  6.0000,  7.5000,  9.0000, 10.5000,\n"
        "        12.0000, 13.5000, 15.0000, 16.5000, 18.0000, 19.5000, 21.0000, 22.5000,\n"
        "        24.0000, 25.5000, 27.0000, 28.5000, 30.0000, 31.5000, 33.0000, 34.5000,\n"
        "        36.0000, 37.5000, 39.0000, 40.5000, 42.0000, 43.5000])",
    ),
    (lambda: clew.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
    (
        lambda: clew.ones(2, requires_grad=True) * 2,
        "tensor([2., 2.], grad_fn=<MulBackward0>)",
    ),
    (lambda: clew.ones(2, 3, device="meta"), "tensor(..., device='meta', size=(2, 3))"),
    (
        lambda: clew.ones(2, device="meta", dtype=clew.int64, requires_grad=False),
        "tensor(..., device='meta', size=(2,), dtype=clew.int64)",
    ),
    (lambda: ramp(2, 3).t(), "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])"),
    (
        lambda: clew.ones(11, dtype=clew.float64, requires_grad=True),
        "tensor([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.], dtype=clew.float64,\n"
        "       requires_grad=True)",
    ),
]


@pytest.mark.parametrize(("make", "text"), GOLDEN, ids=[str(i) for i in range(len(GOLDEN))])
def test_repr(make, text):
    assert repr(make()) == text
    assert str(make()) == text


def test_subclass_names_itself():
    class Special(clew.Tensor):
        pass

    assert repr(clew.ones(2).as_subclass(Special)) == "Special([1., 1.])"


def test_tensor_contents_replaces_the_elements():
    assert clew._tensor.text._str(clew.ones(2), tensor_contents="[two]") == "tensor([two])"


def test_precision():
    with clew._tensor.text.printoptions(precision=2):
        assert repr(clew.tensor([1.23456])) == "tensor([1.23])"
    assert repr(clew.tensor([1.23456])) == "tensor([1.2346])"


def test_threshold_and_edgeitems():
    clew.set_printoptions(threshold=5, edgeitems=1)
    assert repr(ramp(6)) == "tensor([0,  ..., 5])"
    assert repr(ramp(5)) == "tensor([0, 1, 2, 3, 4])"
    assert repr(ramp(3, 3)) == "tensor([[0,  ..., 2],\n        ...,\n        [6,  ..., 8]])"


def test_linewidth():
    clew.set_printoptions(linewidth=20)
    assert repr(ramp(6)) == "tensor([0, 1, 2, 3,\n        4, 5])"
    assert repr(clew.ones(1, dtype=clew.int8)) == "tensor([1],\n       dtype=clew.int8)"


def test_scientific_mode():
    clew.set_printoptions(sci_mode=True)
    assert repr(clew.tensor([1.5])) == "tensor([1.5000e+00])"
    clew.set_printoptions(sci_mode=False)
    assert repr(clew.tensor([1.5, 1e6])) == "tensor([      1.5000, 1000000.0000])"
    clew.set_printoptions()
    assert clew.get_printoptions()["sci_mode"] is None


def test_profiles():
    clew.set_printoptions(profile="short")
    assert repr(clew.tensor([1.23456])) == "tensor([1.23])"
    assert clew.get_printoptions()["edgeitems"] == 2
    clew.set_printoptions(profile="full")
    assert "..." not in repr(ramp(2000))
    clew.set_printoptions(profile="default", precision=1)
    assert repr(clew.tensor([1.25])) == "tensor([1.2])"
    with pytest.raises(ValueError, match="profile"):
        clew.set_printoptions(profile="tiny")


def test_a_failing_block_restores_the_options():
    with pytest.raises(KeyError), clew._tensor.text.printoptions(precision=9, sci_mode=True):
        raise KeyError
    assert clew.get_printoptions()["precision"] == 4
    assert clew.get_printoptions()["sci_mode"] is None


def test_format():
    assert f"{clew.tensor(2.345):.1f}" == "2.3"
    assert f"{clew.tensor(7):>3}" == "  7"
    assert f"{clew.ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(TypeError):
        format(clew.ones(2), ".1f")


def test_printing_records_nothing_and_draws_nothing():
    x = clew.ones(3, requires_grad=True)
    y = x * 2
    before = clew.get_rng_state().tolist()
    repr(y), repr(x)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert clew.get_rng_state().tolist() == before
