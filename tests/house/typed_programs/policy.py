"""Reinforcement learning: a policy with a critic, episodes of varying lengths, returns."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import clew
import clew.nn.functional as F
from clew import Tensor, nn
from clew.distributions import Categorical


class Step(NamedTuple):
    state: Tensor
    reward: float
    done: bool


class World(Protocol):
    def reset(self) -> Tensor: ...

    def step(self, action: int) -> Step: ...


class Corridor:
    """Right leads to a reward, left to the end."""

    def __init__(self, length: int = 4) -> None:
        self.length = length
        self.at = 0

    def reset(self) -> Tensor:
        self.at = random.randrange(2)
        return self._seen()

    def step(self, action: int) -> Step:
        self.at += 1 if action == 1 else -1
        done = not 0 <= self.at < self.length
        return Step(self._seen(), 1.0 if self.at == self.length else -0.1, done)

    def _seen(self) -> Tensor:
        at = min(max(self.at, 0), self.length - 1)
        return F.one_hot(clew.tensor(at), self.length).float()


@dataclass
class Episode:
    chances: list[Tensor] = field(default_factory=list[Tensor])
    values: list[Tensor] = field(default_factory=list[Tensor])
    entropies: list[Tensor] = field(default_factory=list[Tensor])
    rewards: list[float] = field(default_factory=list[float])

    def returns(self, discount: float) -> Tensor:
        total, out = 0.0, list[float]()
        for reward in reversed(self.rewards):
            total = reward + discount * total
            out.append(total)
        return clew.tensor(out[::-1])


class ActorCritic(nn.Module):
    def __init__(self, states: int, actions: int) -> None:
        super().__init__()
        self.body = nn.Linear(states, 32)
        self.actor = nn.Linear(32, actions)
        self.critic = nn.Linear(32, 1)

    def forward(self, state: Tensor) -> tuple[Categorical, Tensor]:
        h = F.relu(self.body(state))
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


def play(world: World, model: ActorCritic, limit: int = 20) -> Episode:
    episode, state = Episode(), world.reset()
    for _ in range(limit):
        choice: Categorical
        value: Tensor
        choice, value = model(state)
        action = choice.sample()
        state, reward, done = world.step(int(action))
        episode.chances.append(choice.log_prob(action))
        episode.entropies.append(choice.entropy())
        episode.values.append(value)
        episode.rewards.append(reward)
        if done:
            break
    return episode


def loss_of(episode: Episode, discount: float = 0.95) -> Tensor:
    returns = episode.returns(discount)
    values = clew.stack(episode.values)
    advantage = (returns - values).detach()
    actor = -(clew.stack(episode.chances) * advantage).sum()
    critic = F.smooth_l1_loss(values, returns, reduction="sum")
    return actor + 0.5 * critic - 0.01 * clew.stack(episode.entropies).sum()


if __name__ == "__main__":
    clew.manual_seed(0)
    model = ActorCritic(4, 2)
    optimizer = clew.optim.RMSprop(model.parameters(), lr=1e-2)
    won = 0
    for _ in range(30):
        episode = play(Corridor(), model)
        loss = loss_of(episode)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        won += episode.rewards[-1] > 0
    print(won)
