"""Trains the two models of this folder with a progress bar, prints their metrics, and saves
curves and graph pictures.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import clew
import curves
import digits_cnn
import tree_lstm

OUTPUT = Path("demo-output")
console = Console()


def run(title: str, module: Any, epochs: int) -> tuple[dict[str, Any], float]:
    """Trains one model under a progress bar; returns its result and the seconds it took."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    start = time.perf_counter()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=1.0, state="")

        def on_step(epoch: int, step: int, steps: int, loss: float) -> None:
            progress.update(
                task,
                completed=(epoch + step / steps) / epochs,
                state=f"epoch {epoch + 1}/{epochs}  loss {loss:.3f}",
            )

        result = module.train(epochs=epochs, on_step=on_step)
    return result, time.perf_counter() - start


def save_pictures(name: str, title: str, result: dict[str, Any]) -> int:
    """Writes the loss curve and the graph of one sample; returns the number of its nodes."""
    curves.loss_curve(result["losses"], result["accuracies"], OUTPUT / f"{name}-curve.png", title)
    graph = clew.graph(result["root"])
    for suffix in ("svg", "html"):
        graph.save(OUTPUT / f"{name}-graph.{suffix}")
    return len(graph)


def main() -> int:
    """Returns 0 when both models learned what they should."""
    OUTPUT.mkdir(exist_ok=True)
    cnn, cnn_seconds = run("digits, CNN", digits_cnn, 15)
    tree, tree_seconds = run("syntax trees, Tree-LSTM", tree_lstm, 8)
    table = Table(title="Held-out results")
    for column in ("model", "training", "held out", "loss", "accuracy", "chance", "time"):
        table.add_column(column)
    for label, r, chance, seconds in (
        ("digits, CNN", cnn, 0.1, cnn_seconds),
        ("syntax trees, Tree-LSTM", tree, tree["majority"], tree_seconds),
    ):
        table.add_row(
            label,
            str(r["training"]),
            str(r["held_out"]),
            f"{r['losses'][0]:.2f} to {r['losses'][-1]:.3f}",
            f"{100 * r['accuracies'][-1]:.1f}%",
            f"{100 * chance:.1f}%",
            f"{seconds:.0f} s",
        )
    console.print(table)
    console.print(
        f"Every tree made its own graph: {tree['nodes']} tree nodes in the training set, no "
        f"batching."
    )
    drawn = save_pictures("digits", "Digits", cnn), save_pictures("tree-lstm", "Tree-LSTM", tree)
    console.print(
        f"Saved loss curves and graph pictures ({drawn[0]} and {drawn[1]} nodes) in {OUTPUT}/:"
    )
    for file in sorted(OUTPUT.iterdir()):
        console.print(f"  {file}  ({file.stat().st_size // 1024} KiB)", highlight=False)
    ok = cnn["accuracies"][-1] >= 0.97 and tree["accuracies"][-1] >= tree["majority"] + 0.2
    if not ok:
        console.print(
            "[red]a model stayed below its expected accuracy (97% for the digits, 20 points "
            "above chance for trees)"
        )
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
