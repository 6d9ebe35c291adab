"""Names at the full paths of the modules that define them, as programs for PyTorch write them."""

import clew
from clew import Tensor, nn


class Double(clew.autograd.function.Function):
    @staticmethod
    def forward(ctx: clew.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: clew.autograd.function.FunctionCtx, *grads: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        assert x.shape == grads[0].shape
        return grads[0] * 2


class Head(nn.modules.module.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.modules.flatten.Flatten(), nn.modules.linear.Linear(6, 2))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x)
        return out


def flat(module: nn.Module) -> bool:
    return isinstance(module, (nn.modules.flatten.Flatten, nn.modules.fold.Unfold))


x = clew.ones(4, 2, 3, requires_grad=True)
with clew.autograd.grad_mode.enable_grad():
    y = Head()(x)
scale: Tensor = clew.nn.functional.softplus(y) + 1.0
normal = clew.distributions.normal.Normal(y, scale)
gap = clew.distributions.kl.kl_divergence(normal, clew.distributions.normal.Normal(0.0, 1.0))
gap.sum().backward()
print(x.grad is not None, [flat(m) for m in Head().modules()])

traced: clew.fx.graph_module.GraphModule = clew.fx.symbolic_trace(Head())
print(len(list(traced.graph.nodes)), clew.functional.einsum("ij->i", y).shape)
print(clew.distributed.constants.default_pg_timeout, clew.distributed.is_available())
print(clew.optim.adam.Adam(Head().parameters()).defaults["lr"])
