"""Two spirals told apart by a small network, with a loader, a schedule and a checkpoint."""

import argparse
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset, random_split


def spirals(n):
    t = torch.rand(n) * 2 * math.pi + 0.5
    label = torch.randint(0, 2, (n,))
    angle = t + label * math.pi
    points = torch.stack([t * torch.cos(angle), t * torch.sin(angle)], dim=1) / 4
    return points + 0.02 * torch.randn(n, 2), label


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.head = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.head(self.layers(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    data = TensorDataset(*spirals(1000))
    train, test = random_split(data, [0.8, 0.2], generator=torch.Generator().manual_seed(0))
    loader = DataLoader(train, batch_size=64, shuffle=True, num_workers=args.workers)
    model = Net(32).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2, weight_decay=1e-4)
    scheduler = CosineAnnealingLR(optimizer, T_max=args.epochs)

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(x)
        scheduler.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch:3d}  loss {total / len(train):.4f}")

    path = os.path.join(tempfile.mkdtemp(), "spirals.pt")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    restored = Net(32)
    restored.load_state_dict(torch.load(path, map_location=device)["model"])
    restored.eval()
    with torch.no_grad():
        x, y = next(iter(DataLoader(test, batch_size=len(test))))
        accuracy = (restored(x).argmax(dim=1) == y).float().mean().item()
    print(f"accuracy {accuracy:.3f}")
    assert accuracy > 0.9


if __name__ == "__main__":
    main()
