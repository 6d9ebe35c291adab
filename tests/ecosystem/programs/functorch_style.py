"""Programs written for functorch: per-sample gradients, ensembles, Jacobians, MAML, Hessians."""

import torch
from torch import nn
from torch.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
params = {n: p.detach() for n, p in model.named_parameters()}
x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))


def score(params, x, y):
    return nn.functional.cross_entropy(functional_call(model, params, (x[None],)), y[None])


found = vmap(grad(score), in_dims=(None, 0, 0))(params, x, y)
print("per_sample", *(g.norm().item() for g in found.values()))
models = [nn.Linear(4, 2) for _ in range(3)]
state, buffers = stack_module_state(models)
base = nn.Linear(4, 2)
outputs = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), (0, 0, None))(state, buffers, x)
print("ensemble", *outputs.sum((1, 2)).tolist())
f = lambda v: v.sin().cumsum(0).prod()
v = torch.rand(4)
print("hessian", *hessian(f)(v).flatten().tolist())
print(
    "jacobians",
    *(jac(lambda v: v**2 @ torch.ones(4, 2))(v).sum().item() for jac in (jacfwd, jacrev)),
)
print("jvp", *(t.item() for t in jvp(f, (v,), (torch.ones(4),))))
print("vjp", *vjp(f, v)[1](torch.tensor(2.0))[0].tolist())


def adapted(params, x, y):
    loss = lambda p: nn.functional.cross_entropy(functional_call(model, p, (x,)), y)
    inner = grad(loss)(params)
    return loss({n: p - 0.1 * inner[n] for n, p in params.items()})


outer = grad(
    lambda p: vmap(adapted, (None, 0, 0))(p, x[None].repeat(2, 1, 1), y[None].repeat(2, 1)).sum()
)
print("maml", *(g.norm().item() for g in outer(params).values()))
