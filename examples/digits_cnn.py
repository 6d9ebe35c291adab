"""A small convolutional network learns scikit-learn's handwritten digits (1,797 pictures of 8 x
8).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import clew
import clew.nn.functional as F
from clew import nn, optim
from clew.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    """Two convolutions, a pooling, two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 24, 3, padding=1)
        self.conv2 = nn.Conv2d(24, 48, 3, padding=1)
        self.norm = nn.BatchNorm2d(48)
        self.drop = nn.Dropout(0.25)
        self.fc1 = nn.Linear(48 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x: clew.Tensor) -> clew.Tensor:
        """Scores of the ten digits for pictures x of shape (B, 1, 8, 8)."""
        x = F.relu(self.conv1(x))
        x = F.relu(self.norm(self.conv2(x)))
        x = F.max_pool2d(x, 2)
        x = self.drop(x.flatten(1))
        return self.fc2(F.relu(self.fc1(x)))


def accuracy(model: nn.Module, loader: DataLoader) -> float:
    """The share of pictures the model names rightly."""
    model.eval()
    right = count = 0
    with clew.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            count += len(y)
    model.train()
    return right / count


def train(
    epochs: int = 15, seed: int = 0, on_step: Callable[..., Any] = lambda *a: None
) -> dict[str, Any]:
    """Trains the network; on_step(epoch, step, steps, loss) is called after every step.

    Returns:
        model, losses and accuracies by epoch, and the graph of a step before training.
    """
    from sklearn.datasets import load_digits

    clew.manual_seed(seed)
    digits = load_digits()
    images = clew.tensor(digits.images, dtype=clew.float32).unsqueeze(1) / 16
    data = TensorDataset(images, clew.tensor(digits.target, dtype=clew.int64))
    training, held_out = random_split(
        data, [0.8, 0.2], generator=clew.Generator().manual_seed(seed)
    )
    loader: DataLoader[Any] = DataLoader(training, batch_size=32, shuffle=True)
    test: DataLoader[Any] = DataLoader(held_out, batch_size=256)
    model = Net()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    with clew.random.fork_rng():  # a step's graph, to be drawn; training draws as without it
        x, y = next(iter(loader))
        root = F.cross_entropy(model(x), y)
    losses, accuracies = [], []
    for epoch in range(epochs):
        total = 0.0
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            on_step(epoch, step + 1, len(loader), loss.item())
        schedule.step()
        losses.append(total / len(loader))
        accuracies.append(accuracy(model, test))
    return {
        "model": model,
        "losses": losses,
        "accuracies": accuracies,
        "root": root,
        "training": len(training),
        "held_out": len(held_out),
    }


if __name__ == "__main__":
    result = train(
        on_step=lambda e, s, n, loss: s == n and print(f"epoch {e + 1}: loss {loss:.3f}")
    )
    print(f"held-out accuracy {100 * result['accuracies'][-1]:.1f}%")
    Path("demo-output").mkdir(exist_ok=True)
