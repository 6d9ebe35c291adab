"""Each parameter steps as soon as its gradient is there, and lets go of the gradient.

A hook runs when backward has added up a parameter's gradient. It steps an optimizer of that one
parameter and drops the gradient, so that at any time backward holds one gradient instead of all
(Lv et al., LOMO, 2023, and PyTorch's tutorial on the optimizer step fused into backward). The
numbers are those of the ordinary loop; clipping by the norm of all gradients is what one gives up.

    python examples/fused_step.py

B batch, C channels.
"""

from __future__ import annotations

import clew
import clew.nn.functional as F
from clew import Tensor, nn, optim

B, C, LAYERS = 64, 512, 4


def network() -> nn.Sequential:
    clew.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(32, C)]
    for _ in range(LAYERS):
        layers += [nn.ReLU(), nn.Linear(C, C)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(C, 1))


def batch(step: int) -> tuple[Tensor, Tensor]:
    """Points (B, 32), and a curved function of their first two numbers."""
    x = clew.randn(B, 32, generator=clew.Generator().manual_seed(step))
    return x, x[:, :1].sin() + x[:, 1:2].abs()


def step_in_backward(model: nn.Module, lr: float) -> None:
    """From now on backward steps every parameter of the model."""
    for p in model.parameters():
        one = optim.Adam([p], lr=lr)

        def now(_: Tensor, one: optim.Adam = one) -> None:
            one.step()
            one.zero_grad()

        p.register_post_accumulate_grad_hook(now)


def train(fused: bool, steps: int = 100, lr: float = 1e-3) -> tuple[list[float], int]:
    """Losses, and the most bytes alive at once in a step after the first."""
    model = network()
    optimizer = None if fused else optim.Adam(model.parameters(), lr=lr)
    if fused:
        step_in_backward(model, lr)
    losses, peak = [], 0
    for step in range(steps):
        if step == 1:
            clew.reset_peak_memory_stats()
        x, y = batch(step)
        loss = F.mse_loss(model(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        losses.append(loss.item())
    peak = clew.memory_stats()["peak_bytes"]
    return losses, peak


def main() -> None:
    size = sum(p.numel() * p.element_size() for p in network().parameters())
    print(f"parameters take {size / 1e6:.1f} MB")
    for fused in (False, True):
        losses, peak = train(fused)
        way = "a step within backward" if fused else "a step after backward"
        print(f"{way}: loss {losses[0]:.3f} to {losses[-1]:.3f}, at most {peak / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
