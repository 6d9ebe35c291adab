"""Adam whose moments live in a small subspace of each weight's gradients.

A gradient G (m, n) of a weight matrix has few directions that matter, and they turn slowly. So
every some steps its r leading left singular vectors P (m, r) are taken; Adam sees P'G (r, n), keeps
moments of that size, and its step goes back as P times it (Zhao et al., GaLore: Memory-Efficient
LLM Training by Gradient Low-Rank Projection, 2024).

    python examples/galore.py

B batch, C channels.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from sklearn.datasets import load_digits

import clew
import clew.nn.functional as F
from clew import Tensor, nn, optim


class GaLore(optim.Optimizer):
    """Adam in a subspace, for matrices; plain Adam for what is smaller than the rank.

    Args:
        params: parameters.
        lr: step length.
        rank: dims of the subspace.
        every: steps between two choices of it.
        scale: of the steps of projected parameters.
        betas: decay of the moments.
        eps: added to the denominator.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        rank: int = 8,
        every: int = 50,
        scale: float = 1.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        if rank < 1 or every < 1:
            raise ValueError(f"GaLore: rank and every must be at least 1; got {rank}, {every}")
        options = {"lr": lr, "rank": rank, "every": every, "scale": scale}
        super().__init__(params, {**options, "betas": betas, "eps": eps})

    @clew.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with clew.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step(p, p.grad, self.state[p], group)
        return loss

    def _step(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        projected = p.ndim == 2 and min(p.shape) > group["rank"]
        turned = projected and p.shape[0] > p.shape[1]  # the shorter side is projected
        if turned:
            grad = grad.T
        count = state.get("step", 0)
        if projected:
            if count % group["every"] == 0:
                state["basis"] = clew.linalg.svd(grad, full_matrices=False)[0][:, : group["rank"]]
            grad = state["basis"].T @ grad
        if not count:
            state["mean"], state["square"] = clew.zeros_like(grad), clew.zeros_like(grad)
        state["step"] = count = count + 1
        beta1, beta2 = group["betas"]
        state["mean"].lerp_(grad, 1 - beta1)
        state["square"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = (state["square"] / (1 - beta2**count)).sqrt_().add_(group["eps"])
        change = state["mean"] / root / (1 - beta1**count)
        if projected:
            change = group["scale"] * (state["basis"] @ change)
        p.sub_(change.T if turned else change, alpha=group["lr"])


def state_bytes(optimizer: optim.Optimizer) -> int:
    """What the state of an optimizer takes."""
    tensors = [t for own in optimizer.state.values() for t in own.values() if isinstance(t, Tensor)]
    return sum(t.numel() * t.element_size() for t in tensors)


def network(C: int = 256) -> nn.Sequential:
    clew.manual_seed(0)
    return nn.Sequential(nn.Linear(64, C), nn.ReLU(), nn.Linear(C, C), nn.ReLU(), nn.Linear(C, 10))


def train(kind: Any = GaLore, steps: int = 300, B: int = 64, **options: Any) -> dict[str, Any]:
    """Trains on scikit-learn's handwritten digits: losses, held-out accuracy, bytes of state."""
    digits = load_digits()
    x = clew.tensor(digits.data, dtype=clew.float32) / 16
    y = clew.tensor(digits.target)
    model = network()
    optimizer = kind(model.parameters(), lr=2e-3, **options)
    losses = []
    for step in range(steps):
        rows = clew.randint(1400, (B,), generator=clew.Generator().manual_seed(step))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with clew.no_grad():
        accuracy = (model(x[1400:]).argmax(1) == y[1400:]).float().mean().item()
    return {"losses": losses, "accuracy": accuracy, "state": state_bytes(optimizer)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rank", type=int, default=8)
    options = parser.parse_args()
    for name, kind, extra in (("Adam", optim.Adam, {}), ("GaLore", GaLore, {"rank": options.rank})):
        begun = time.perf_counter()
        found = train(kind, **extra)
        print(
            f"{name}: loss {found['losses'][0]:.2f} to {found['losses'][-1]:.2f}, accuracy "
            f"{100 * found['accuracy']:.1f}%, state {found['state'] / 1e3:.0f} kB, "
            f"{time.perf_counter() - begun:.1f} s"
        )


if __name__ == "__main__":
    main()
