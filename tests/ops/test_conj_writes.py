"""conj() makes a copy: a write to it would not reach the tensor it was made from, so it raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew


def matrix() -> clew.Tensor:
    return clew.tensor([[1 + 2j, 3 - 1j], [2j, 4 + 0j]])


SHOWN: dict[str, Callable[[clew.Tensor], clew.Tensor]] = {
    "conj": lambda z: z.conj(),
    "function": lambda z: clew.conj(z),
    "conj of conj": lambda z: z.conj().conj(),
    "mH": lambda z: z.mH,
    "H": lambda z: z.H,
    "adjoint": lambda z: z.adjoint(),
    "row": lambda z: z.conj()[0],
    "imag": lambda z: z.conj().imag,
    "real": lambda z: z.mH.real,
    "parts": lambda z: clew.view_as_real(z.conj()),
    "detach": lambda z: z.conj().detach(),
    "data": lambda z: z.conj().data,
    "0-d": lambda z: z[0, 0].adjoint(),
}
WRITES: dict[str, Callable[[clew.Tensor], Any]] = {
    "add_": lambda t: t.add_(1),
    "copy_": lambda t: t.copy_(clew.zeros(t.shape)),
    "index": lambda t: t.__setitem__(..., 2),
    "fill_": lambda t: t.fill_(1),
    "zero_": lambda t: t.zero_(),
    "out": lambda t: clew.add(t.clone(), 1, out=t),
    "out of creation": lambda t: clew.zeros(t.shape, dtype=t.dtype, out=t),
    "out in Python": lambda t: (
        clew.linalg.multi_dot([t.clone(), t.clone()], out=t) if t.ndim == 2 else t.mul_(2)
    ),
    "normal_": lambda t: t.normal_(),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("shown", SHOWN)
def test_writes_raise(shown: str, write: str):
    z = matrix()
    before = z.numpy().copy()
    t = SHOWN[shown](z)
    was = t.clone()
    with pytest.raises(RuntimeError, match=r"result of conj\(\).*resolve_conj"):
        WRITES[write](t)
    np.testing.assert_array_equal(z.numpy(), before)
    np.testing.assert_array_equal(t.numpy(), was.numpy())


def test_copies_may_be_written_to():
    z = matrix()
    want = np.conj(z.numpy())
    for own in (
        z.conj().resolve_conj(),
        z.conj().clone(),
        z.conj() + 0,
        z.conj_physical(),
        z.mH.resolve_conj().mT,
        clew.tensor(z.conj().tolist()),
        clew.from_numpy(z.conj().numpy(force=True)),
    ):
        np.testing.assert_array_equal(own.numpy(), want)
        own.mul_(2)
        np.testing.assert_array_equal(own.numpy(), 2 * want)
    part = z.conj().imag.resolve_neg()
    part.add_(1)
    np.testing.assert_array_equal(part.numpy(), want.imag + 1)
    np.testing.assert_array_equal(z.numpy(), matrix().numpy())


def test_what_says_so():
    z = matrix()
    y = z.conj()
    for t in (y, y[0], y.t(), y.reshape(4), y.detach(), z.mH, z.H, z.adjoint(), clew.conj(z)):
        assert t.is_conj() and clew.is_conj(t)
    real = clew.ones(2)
    for t in (z, y.resolve_conj(), y.clone(), y * 1, y.conj_physical(), y.real, real.conj()):
        assert not t.is_conj()
    assert real.conj() is real and real.conj().add_(1) is real


def test_arrays_are_read_only():
    array = matrix().conj().numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0
    with pytest.raises(BufferError, match="resolve_conj"):
        matrix().conj().__dlpack__()


def test_in_vmap():
    def write(z: clew.Tensor) -> clew.Tensor:
        return z.conj().mul_(2)

    with pytest.raises(RuntimeError, match=r"result of conj\(\)"):
        clew.func.vmap(write)(matrix())


class Conjugate(clew.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: clew.Tensor) -> clew.Tensor:
        return z * 1

    @staticmethod
    def backward(ctx: Any, g: clew.Tensor) -> clew.Tensor:
        return g.conj()


def test_gradients_and_results_may_be_written_to():
    z = matrix().requires_grad_()
    (g,) = clew.autograd.grad((Conjugate.apply(z) * 1j).sum().real, z)
    g.mul_(2)
    np.testing.assert_array_equal(g.numpy(), np.full((2, 2), 2j))
    Conjugate.apply(z).sum().real.backward()
    assert z.grad is not None
    z.grad.zero_()
    plain = matrix() + 5 * clew.eye(2)
    lu, pivots = clew.linalg.lu_factor(plain)
    clew.linalg.lu_solve(lu, pivots, plain, left=False).zero_()
    for t in clew.svd(plain):
        t.zero_()
    clew.fft.ihfft(clew.ones(4)).zero_()


def test_an_optimizer_does_not_step_it():
    p = clew.nn.Parameter(matrix().conj())
    p.grad = clew.ones_like(p)
    with pytest.raises(RuntimeError, match=r"result of conj\(\)"):
        clew.optim.SGD([p], lr=0.1).step()


@pytest.mark.parametrize("name", ["T", "mT", "H", "mH"])
def test_transposes_of_one_number_warn(name: str):
    for value in (2.0, 1 + 2j):
        with pytest.warns(UserWarning, match="deprecated on 0-D tensors"):
            got = getattr(clew.tensor(value), name)
        assert got.shape == () and got.item() == (np.conj(value) if "H" in name else value)
    assert clew.tensor(1 + 2j).adjoint().item() == 1 - 2j
