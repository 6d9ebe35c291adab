"""REINFORCE on a walk to a goal: a graph for every episode, of whatever length it has."""

import torch
import torch.nn as nn
from torch.distributions import Categorical

LENGTH = 6


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(LENGTH, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, place):
        return Categorical(logits=self.layers(nn.functional.one_hot(place, LENGTH).float()))


def episode(policy):
    place, logs = torch.tensor(0), []
    while place < LENGTH - 1 and len(logs) < 40:
        choice = policy(place)
        action = choice.sample()
        logs.append(choice.log_prob(action))
        place = (place + 2 * action - 1).clamp(min=0)
    return torch.stack(logs), -float(len(logs))


def main():
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-2)
    baseline, history = 0.0, []
    for _ in range(200):
        batch = [episode(policy) for _ in range(8)]
        returns = torch.tensor([r for _, r in batch])
        baseline = 0.9 * baseline + 0.1 * returns.mean().item()
        loss = -sum(logs.sum() * (r - baseline) for (logs, _), r in zip(batch, returns)) / len(
            batch
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(-returns.mean().item())
    early, late = sum(history[:10]) / 10, sum(history[-10:]) / 10
    print(f"steps to the goal: {early:.1f} -> {late:.1f} (least possible {LENGTH - 1})")
    assert late < LENGTH + 1


if __name__ == "__main__":
    main()
