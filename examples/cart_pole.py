"""An actor-critic learns to balance a pole on a cart.

The environment is the cart-pole of Barto, Sutton and Anderson (1983): push left or right, once in
0.02 s; an episode ends when the pole leans by more than 12 degrees or the cart leaves its track.
The gradient is REINFORCE's (Williams 1992) with a learnt baseline. Each episode has a length of
its own, and its graph grows while it is played.
"""

from __future__ import annotations

import math
import random
import time
from typing import Any

import clew
import clew.nn.functional as F
from clew import nn, optim

DISCOUNT = 0.98


class CartPole:
    """State: place and speed of the cart, angle of the pole and its rate."""

    def __init__(self, longest: int, rng: random.Random) -> None:
        self.longest, self.rng = longest, rng

    def reset(self) -> list[float]:
        self.state, self.steps = [self.rng.uniform(-0.05, 0.05) for _ in range(4)], 0
        return self.state

    def step(self, right: int) -> tuple[list[float], bool]:
        """Pushes; returns the new state and whether the episode is over."""
        x, speed, angle, rate = self.state
        force = 10.0 if right else -10.0
        sin, cos = math.sin(angle), math.cos(angle)
        push = (force + 0.05 * rate * rate * sin) / 1.1  # 1.1 kg in all; 0.05 = mass * length
        bend = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        pull = push - 0.05 * bend * cos / 1.1
        self.state = [
            x + 0.02 * speed,
            speed + 0.02 * pull,
            angle + 0.02 * rate,
            rate + 0.02 * bend,
        ]
        self.steps += 1
        self.fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * math.pi / 180
        return self.state, self.fell or self.steps >= self.longest


class Agent(nn.Module):
    """The chance of each push, and what the agent still expects to come."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, width)
        self.push, self.value = nn.Linear(width, 2), nn.Linear(width, 1)

    def forward(self, state: clew.Tensor) -> tuple[clew.Tensor, clew.Tensor]:
        """Logarithms of the two chances, and the value, for states (..., 4)."""
        h = self.hidden(state).tanh()
        return self.push(h).log_softmax(-1), self.value(h).squeeze(-1)


def play(agent: Agent, world: CartPole) -> tuple[clew.Tensor, clew.Tensor, clew.Tensor]:
    """Plays one episode.

    Returns:
        by step: the logarithm of the chance of what was done, the value, and the return, where each
        step that is survived counts one.
    """
    state, over = world.reset(), False
    chosen, values = [], []
    while not over:
        scores, value = agent(clew.tensor(state))
        action = int(world.rng.random() < math.exp(scores[1].item()))
        chosen.append(scores[action])
        values.append(value)
        state, over = world.step(action)
    left = clew.arange(len(chosen), 0, -1).float()
    # An episode that was cut, not lost, counts as one that goes on for ever.
    target = (1 - DISCOUNT**left) if world.fell else clew.ones(len(chosen))
    return clew.stack(chosen), clew.stack(values), target


def train(
    updates: int = 60, episodes: int = 8, longest: int = 200, seed: int = 0, batched: bool = True
) -> dict[str, Any]:
    """Plays some episodes, then learns from them; stops when all of them lasted the longest."""
    clew.manual_seed(seed)
    worlds = [CartPole(longest, random.Random(seed + i)) for i in range(episodes)]
    agent = Agent()
    optimizer, lengths = optim.Adam(agent.parameters(), lr=1e-2), []
    for _ in range(updates):
        if batched:  # episodes that wait for an action get theirs in one call of the network
            played = clew.autobatch.map(lambda world: play(agent, world), worlds)
        else:
            played = [play(agent, world) for world in worlds]
        chosen, values, target = (clew.cat(parts) for parts in zip(*played))
        better = target - values.detach()
        better = (better - better.mean()) / (better.std() + 1e-6)
        loss = -(chosen * better).mean() + F.mse_loss(values, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(len(chosen) / episodes)
        if lengths[-1] == longest:
            break
    return {"agent": agent, "lengths": lengths, "loss": loss}


if __name__ == "__main__":
    for way in (False, True):
        begun = time.perf_counter()
        steps = train(batched=way)["lengths"]
        print(
            f"{'batched' if way else 'one by one':10}  an episode lasts {steps[0]:.0f} steps at "
            f"first, {steps[-1]:.0f} after {len(steps)} updates; "
            f"{(time.perf_counter() - begun) / sum(steps) / 8 * 1e6:.0f} microseconds a step"
        )
