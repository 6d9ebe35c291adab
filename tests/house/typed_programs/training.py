"""A training loop with a module, a dataset, a loader, a scheduler and saving."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import clew
import clew.nn.functional as F
from clew import Tensor, nn
from clew.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Points(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.x = clew.randn(n, 4)
        self.y = (self.x.sum(dim=1) > 0).long()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


class Net(nn.Module):
    def __init__(self, width: int, classes: int = 2) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(width, classes))
        self.scale = nn.Parameter(clew.ones(width))
        self.register_buffer("steps", clew.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = F.relu(self.first(x))
        for block in self.blocks:
            h = h + block(h)
        h = self.drop(self.norm(h)) * self.scale
        out: Tensor = self.head(h)
        return out


def batches(loader: DataLoader[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    yield from loader


def train(epochs: int) -> float:
    clew.manual_seed(0)
    device = clew.device("cpu")
    train_set, test_set = random_split(Points(64), [48, 16])
    loader = DataLoader(train_set, batch_size=16, shuffle=True)
    model = Net(8).to(device)
    optimizer = clew.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    scheduler = clew.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    loss_of = nn.CrossEntropyLoss()
    total = 0.0
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss: Tensor = loss_of(model(x.to(device)), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        scheduler.step()
    model.eval()
    with clew.no_grad():
        for x, y in DataLoader(test_set, batch_size=4):
            guess = model(x).argmax(dim=1)
            hits = (guess == y).float().mean()
            total += float(hits)
    state = model.state_dict()
    clew.save(state, Path("model.clew"))
    model.load_state_dict(state)
    for name, p in model.named_parameters():
        if p.grad is not None:
            total += p.grad.norm().item() + len(name)
    return total


def plain() -> None:
    data = TensorDataset(clew.rand(8, 2), clew.arange(8))
    for x, y in DataLoader(data, batch_size=2):
        print(x.shape[0], y.dtype)


if __name__ == "__main__":
    print(train(2))
    plain()
