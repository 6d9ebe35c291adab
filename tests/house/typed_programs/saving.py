"""Saving, loading, going on: checkpoints, random state, precision, early stopping."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

import clew
import clew.nn.functional as F
from clew import Tensor, nn
from clew.utils.checkpoint import checkpoint


@dataclass
class Config:
    width: int = 16
    rate: float = 1e-2
    device: str = "cpu"


class Saved(TypedDict):
    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    config: dict[str, Any]
    epoch: int
    random: Tensor


class Net(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv1d(1, config.width, 3, padding=1), nn.GELU(), nn.ReflectionPad1d(1)
        )
        self.head = nn.Linear(config.width, 1)
        self.register_buffer("seen", clew.zeros((), dtype=clew.int64))
        self.seen: Tensor

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.seen += x.shape[0]
        h: Tensor = checkpoint(self.inner, x.unsqueeze(1), use_reentrant=False)
        out: Tensor = self.head(F.adaptive_avg_pool1d(h, 1).flatten(1))
        return out.squeeze(1)


def save(path: Path, model: Net, optimizer: clew.optim.Optimizer, config: Config, n: int) -> None:
    saved: Saved = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "config": asdict(config),
        "epoch": n,
        "random": clew.get_rng_state(),
    }
    clew.save(saved, path)


def load(path: Path) -> tuple[Net, clew.optim.Optimizer, int]:
    saved: Saved = clew.load(path, map_location="cpu", weights_only=True)
    config = Config(**saved["config"])
    model = Net(config).to(clew.device(config.device))
    missing, unexpected = model.load_state_dict(saved["model"], strict=True)
    assert not missing and not unexpected
    optimizer = clew.optim.SGD(model.parameters(), lr=config.rate, momentum=0.9, nesterov=True)
    optimizer.load_state_dict(saved["optimizer"])
    clew.set_rng_state(saved["random"])
    return model, optimizer, saved["epoch"]


def epoch(model: Net, optimizer: clew.optim.Optimizer, x: Tensor, y: Tensor) -> float:
    model.train()
    with clew.autocast("cpu", dtype=clew.bfloat16):
        loss = F.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@clew.inference_mode()
def predict(model: Net, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    model.eval()
    out: npt.NDArray[np.float32] = model(clew.from_numpy(x)).numpy()
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    clew.manual_seed(0)
    config = Config()
    model = Net(config)
    optimizer = clew.optim.SGD(model.parameters(), lr=config.rate, momentum=0.9, nesterov=True)
    x = clew.randn(16, 10)
    y = x.mean(dim=1)
    best = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.pt"
        for n in range(args.epochs):
            best = min(best, epoch(model, optimizer, x, y))
            save(path, model, optimizer, config, n)
        again, _, n = load(path)
        size = sum(p.numel() for p in again.parameters() if p.requires_grad)
        print(best, n, size, int(again.seen), predict(again, x.numpy()).shape)


if __name__ == "__main__":
    main()
