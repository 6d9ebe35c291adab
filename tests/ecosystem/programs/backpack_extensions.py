"""backpack: first- and second-order extensions of a small network."""

import torch
from backpack import backpack, extend
from backpack.extensions import (
    KFAC,
    BatchGrad,
    BatchL2Grad,
    DiagGGNExact,
    DiagHessian,
    SumGradSquared,
    Variance,
)
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(6, 1, 8, 8), torch.randint(0, 3, (6,))
model = extend(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(72, 3)))
score = extend(nn.CrossEntropyLoss())
torch.manual_seed(1)
loss = score(model(x), y)
kinds = (BatchGrad, BatchL2Grad, SumGradSquared, Variance, DiagGGNExact, DiagHessian, KFAC)
with backpack(*(kind() for kind in kinds)):
    loss.backward()
print("loss", loss.item())
for name, p in model.named_parameters():
    print(
        name,
        p.grad_batch.abs().sum().item(),
        p.batch_l2.sum().item(),
        p.sum_grad_squared.sum().item(),
        p.variance.sum().item(),
        p.diag_ggn_exact.sum().item(),
        p.diag_h.sum().item(),
        *(k.sum().item() for k in p.kfac),
    )
