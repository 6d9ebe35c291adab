"""neuraloperator: Fourier operators, losses, a few steps."""

import torch
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO, TFNO

for kind, how in ((FNO, {}), (TFNO, {"rank": 0.5, "factorization": "tucker"})):
    torch.manual_seed(0)
    model = kind(
        n_modes=(4, 4), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2, **how
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x, y = torch.randn(2, 1, 16, 16), torch.randn(2, 1, 16, 16)
    losses = []
    for _ in range(3):
        loss = H1Loss(d=2)(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(kind.__name__, *losses, LpLoss(d=2, p=2)(model(x), y).item())
