"""A custom Function returns a gradient of another shape than its input.

`scale` was broadcast over the rows, so its gradient is the sum over them: `(grad * x).sum(0)`.
"""

import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return grad * scale, (grad * x).sum(1)


x = torch.ones(3, 4, requires_grad=True)
scale = torch.ones(4, requires_grad=True)
Scale.apply(x, scale).sum().backward()
