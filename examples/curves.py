"""Draws the progress of a training."""

from __future__ import annotations

from pathlib import Path


def loss_curve(losses: list[float], accuracies: list[float], path: Path, title: str) -> None:
    """Writes the training loss and the held-out accuracy by epoch to ``path``."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    epochs = range(1, len(losses) + 1)
    fig, left = plt.subplots(figsize=(6, 3.6))
    left.plot(epochs, losses, color="#d1495b", marker="o", ms=3, label="training loss")
    left.set_xlabel("epoch")
    left.set_ylabel("training loss", color="#d1495b")
    right = left.twinx()
    right.plot(
        epochs,
        [100 * a for a in accuracies],
        color="#2e6fba",
        marker="s",
        ms=3,
        label="held-out accuracy",
    )
    right.set_ylabel("held-out accuracy, %", color="#2e6fba")
    right.set_ylim(0, 100)
    left.set_title(title)
    fig.tight_layout()
    fig.savefig(path, dpi=110)
    plt.close(fig)
