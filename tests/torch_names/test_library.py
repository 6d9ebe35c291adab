"""Operations that a program adds."""

import numpy as np
import pytest

import clew
from clew import library


@library.custom_op("test_library::scaled_square", mutates_args=())
def scaled_square(x: clew.Tensor, k: float = 1.0) -> clew.Tensor:
    return clew.from_numpy(np.square(x.detach().numpy()) * k)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.k = inputs[1]


scaled_square.register_autograd(
    lambda ctx, g: (2 * g * ctx.saved_tensors[0] * ctx.k, None), setup_context=_keep
)
scaled_square.register_fake(lambda x, k=1.0: clew.empty_like(x))


def test_called_by_name_and_differentiated():
    x = clew.tensor([1.0, 2.0], requires_grad=True)
    scaled_square(x, k=3.0).sum().backward()
    assert x.grad.tolist() == [6, 12]
    op = clew.ops.test_library.scaled_square
    assert op.default(x).tolist() == [1, 4] and str(op._schema) == (
        "scaled_square(Tensor x, float k=1.0) -> Tensor"
    )
    assert op(clew.ones(3, device="meta")).shape == (3,)
    assert set(library.opcheck(scaled_square, (x, 2.0)).values()) == {"SUCCESS"}
    with pytest.raises(TypeError, match="unexpected"):
        op(x, z=1)
    with pytest.raises(AttributeError, match="no such operation"):
        _ = clew.ops.test_library.nothing


def test_under_vmap():
    x = clew.arange(6.0).view(3, 2)
    assert clew.vmap(scaled_square)(x).tolist() == x.square().tolist()
    grads = clew.vmap(clew.func.grad(lambda v: scaled_square(v).sum()))(x)
    assert grads.tolist() == (2 * x).tolist()


def test_a_library_of_schemas():
    lib = library.Library("test_library_2", "DEF")
    lib.define("f(Tensor x, int n=2, *, bool half=False) -> Tensor")
    lib.impl("f", lambda x, n, half: x * n / (2 if half else 1), "CPU")
    f = clew.ops.test_library_2.f
    x = clew.ones(2, requires_grad=True)
    f(x, 3, half=True).sum().backward()
    assert x.grad.tolist() == [1.5, 1.5] and clew.vmap(f)(clew.ones(2, 2)).tolist() == [[2, 2]] * 2
    with pytest.raises(RuntimeError, match="defined already"):
        lib.define("f(Tensor x) -> Tensor")

    def g(
        x: clew.Tensor, y: clew.Tensor | None, n: int, s: list[int]
    ) -> tuple[clew.Tensor, int]: ...

    assert library.infer_schema(g, mutates_args=("x",)) == (
        "(Tensor(a!) x, Tensor? y, SymInt n, SymInt[] s) -> (Tensor, SymInt)"
    )
