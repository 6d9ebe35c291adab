"""Functional transforms: derivatives of functions, vectorized over samples, of modules too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import clew
from clew import Tensor, nn
from clew.autograd.functional import hvp
from clew.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, vjp, vmap

Weights = dict[str, Tensor]


def energy(x: Tensor, k: float = 1.0) -> Tensor:
    return 0.5 * k * (x * x).sum() + x.sin().sum()


def newton(f: Callable[[Tensor], Tensor], x: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
        g: Tensor = grad(f)(x)
        h: Tensor = hessian(f)(x)
        x = x - clew.linalg.solve(h, g)
    return x


def per_sample(model: nn.Module, x: Tensor, y: Tensor) -> Weights:
    weights: Weights = {n: p.detach() for n, p in model.named_parameters()}

    def loss(weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        out: Tensor = functional_call(model, weights, (x.unsqueeze(0),))
        return ((out.squeeze(0) - y) ** 2).mean()

    gradients: Weights = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    return gradients


def ensemble(models: list[nn.Linear], x: Tensor) -> Tensor:
    params, buffers = clew.func.stack_module_state(models)

    def one(params: Weights, buffers: Weights, x: Tensor) -> Tensor:
        out: Tensor = functional_call(models[0], (params, buffers), (x,))
        return out

    outs: Tensor = vmap(one, in_dims=(0, 0, None))(params, buffers, x)
    return outs


def adapt(weights: Weights, x: Tensor, y: Tensor, rate: float = 0.1) -> Weights:
    """A step of learning inside of what is learnt."""

    def loss(weights: Weights) -> Tensor:
        return ((x @ weights["w"] - y) ** 2).mean()

    slopes: Weights = grad(loss)(weights)
    return {n: w - rate * slopes[n] for n, w in weights.items()}


def main() -> None:
    clew.manual_seed(0)
    x = clew.randn(3)
    value: Tensor
    slope, value = grad_and_value(partial(energy, k=2.0))(x)
    print(value.item(), slope.shape, newton(energy, x, 8).abs().max() < 1)
    out, pushed = jvp(energy, (x,), (clew.ones(3),))
    out, pull = vjp(energy, x)
    print(out.dim(), pushed.dim(), pull(clew.tensor(1.0))[0].shape)
    table: Tensor = jacrev(clew.sin)(x)
    print(clew.allclose(table.diagonal(), x.cos()))
    _, product = hvp(energy, x, clew.ones(3))
    print(product)
    gradients = per_sample(nn.Linear(4, 2), clew.randn(5, 4), clew.randn(5, 2))
    print({n: tuple(g.shape) for n, g in gradients.items()})
    print(ensemble([nn.Linear(4, 2) for _ in range(3)], clew.randn(6, 4)).shape)
    w = clew.randn(4, 1, requires_grad=True)
    data = clew.randn(8, 4)
    learnt = adapt({"w": w}, data, data.sum(dim=1, keepdim=True))
    (learnt["w"] ** 2).sum().backward()
    assert w.grad is not None
    print(w.grad.norm().item() > 0)


if __name__ == "__main__":
    main()
