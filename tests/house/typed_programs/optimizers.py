"""Optimizers: groups, one of one's own, schedulers, clipping, averages of weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import clew
import clew.nn.functional as F
from clew import Tensor, nn, optim
from clew.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from clew.optim.swa_utils import AveragedModel


class Signs(optim.Optimizer):
    """Steps by the signs of averaged gradients."""

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float = 1e-2, momentum: float = 0.9
    ) -> None:
        if lr <= 0:
            raise ValueError(f"lr: expected a positive number; got {lr}")
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @clew.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:
        loss: Tensor | None = None
        if closure is not None:
            with clew.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state: dict[str, Any] = self.state[p]
                if not state:
                    state["mean"] = clew.zeros_like(p)
                mean: Tensor = state["mean"]
                mean.mul_(group["momentum"]).add_(p.grad, alpha=1 - group["momentum"])
                p.add_(mean.sign(), alpha=-group["lr"])
        return loss


def grouped(model: nn.Module) -> optim.AdamW:
    decayed = [p for n, p in model.named_parameters() if p.dim() > 1 and "norm" not in n]
    plain = [p for n, p in model.named_parameters() if p.dim() <= 1 or "norm" in n]
    return optim.AdamW(
        [
            {"params": decayed, "weight_decay": 0.1},
            {"params": plain, "weight_decay": 0.0, "lr": 3e-3},
        ],
        lr=1e-3,
        betas=(0.9, 0.99),
    )


def train(model: nn.Module, optimizer: optim.Optimizer, x: Tensor, y: Tensor) -> list[float]:
    warm = LinearLR(optimizer, start_factor=0.1, total_iters=5)
    scheduler = SequentialLR(optimizer, [warm, CosineAnnealingLR(optimizer, T_max=15)], [5])
    average = AveragedModel(model)
    losses: list[float] = []
    for _ in range(20):
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x).squeeze(-1), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        if not clew.isfinite(norm):
            continue
        optimizer.step()
        scheduler.step()
        average.update_parameters(model)
        losses.append(loss.item())
    rates: list[float] = scheduler.get_last_lr()
    assert len(rates) == len(optimizer.param_groups)
    return losses


if __name__ == "__main__":
    clew.manual_seed(0)
    x = clew.randn(64, 4)
    y = x @ clew.tensor([1.0, -2.0, 0.5, 3.0])
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 1))
    first = train(net, grouped(net), x, y)
    second = train(net, Signs(net.parameters(), lr=0.01), x, y)
    print(first[-1], second[-1])
