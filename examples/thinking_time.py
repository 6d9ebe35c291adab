"""A network decides by itself how long to think: adaptive computation time (Graves 2016).

It computes the parity of up to three signs. The state is updated again and again on the same
input; after each update the network says how likely it stops, and the loop ends when these chances
add up to one. A small price for each step keeps it from thinking for ever.
"""

from __future__ import annotations

import random
import time
from typing import Any

import clew
import clew.nn.functional as F
from clew import nn, optim

BITS = 3
LONGEST = 6


class Thinker(nn.Module):
    """A GRU cell that is called as often as its own halting unit wants."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.start = nn.Parameter(clew.zeros(width))
        self.cell = nn.GRUCell(BITS + 1, width)
        self.halt, self.out = nn.Linear(width, 1), nn.Linear(width, 1)
        nn.init.constant_(self.halt.bias, -1.0)  # thinks for some steps at first

    def solve(self, x: clew.Tensor) -> tuple[clew.Tensor, clew.Tensor, int]:
        """For one problem x (BITS,): the answer's logit, the ponder cost, the steps taken."""
        state, steps, total = self.start, 0, 0.0
        answer, used = clew.zeros(1), clew.zeros(1)
        while True:
            steps += 1
            state = self.cell(clew.cat([x, clew.full((1,), float(steps == 1))]), state)
            p = self.halt(state).sigmoid()
            total += p.item()  # a value decides how the graph goes on
            last = total >= 0.99 or steps == LONGEST
            weight = 1 - used if last else p
            answer = answer + weight * self.out(state)
            if last:
                return answer.squeeze(0), steps + weight, steps
            used = used + p


def make(count: int, rng: random.Random) -> tuple[clew.Tensor, clew.Tensor, list[int]]:
    """Problems of 1 to BITS signs, the rest zeros; their parities; how many signs."""
    rows, parity, sizes = [], [], []
    for _ in range(count):
        size = rng.randint(1, BITS)
        signs = [rng.choice((-1.0, 1.0)) for _ in range(size)]
        rows.append(signs + [0.0] * (BITS - size))
        parity.append(float(signs.count(1.0) % 2))
        sizes.append(size)
    return clew.tensor(rows), clew.tensor(parity), sizes


def think(model: Thinker, x: clew.Tensor, batched: bool) -> list[Any]:
    """The results for each problem; batched: those that still think go on together."""
    return clew.autobatch.map(model.solve, x.unbind()) if batched else [model.solve(r) for r in x]


def train(
    steps: int = 250, batch: int = 64, price: float = 0.01, seed: int = 0, batched: bool = True
) -> dict[str, Any]:
    """Trains; returns model, losses, held-out accuracy, and the mean steps by number of signs."""
    clew.manual_seed(seed)
    rng, model = random.Random(seed), Thinker()
    optimizer, losses = optim.Adam(model.parameters(), lr=5e-3), []
    for _ in range(steps):
        x, parity, _ = make(batch, rng)
        logits, ponder, _ = zip(*think(model, x, batched))
        error = F.binary_cross_entropy_with_logits(clew.stack(logits), parity)
        loss = error + price * clew.cat(ponder).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(error.item())
    x, parity, sizes = make(400, rng)
    with clew.no_grad():
        logits, _, counts = zip(*think(model, x, batched))
    right = ((clew.stack(logits) > 0).float() == parity).float().mean().item()
    by_size = {}
    for n in range(1, BITS + 1):
        taken = [c for c, size in zip(counts, sizes) if size == n]
        by_size[n] = sum(taken) / len(taken)
    return {"model": model, "losses": losses, "accuracy": right, "thought": by_size}


if __name__ == "__main__":
    for way in (False, True):
        begun = time.perf_counter()
        train(steps=5, batched=way)
        milliseconds = (time.perf_counter() - begun) / 5 * 1e3
        print(f"{'batched' if way else 'one by one'}: {milliseconds:.0f} ms a step")
    found = train()
    print(f"loss {found['losses'][0]:.2f} to {found['losses'][-1]:.2f}, ", end="")
    print(f"accuracy {100 * found['accuracy']:.0f}% (chance 50%)")
    print("steps by number of signs:", {n: round(c, 1) for n, c in found["thought"].items()})
