"""Makes the pictures of graphs in docs/images: three real models, drawn as SVG and as the page.

    PYTHONPATH=src python tools/graph_pictures.py [--pages FOLDER]

SVGs are written always; screenshots of the pages only where Chromium is found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import clew
from clew import nn

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests" / "graph"))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """A decoder of 12 blocks, small in width."""

    def __init__(self, words: int = 1000, width: int = 192, layers: int = 12) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.position = nn.Parameter(clew.zeros(64, width))
        self.blocks = nn.ModuleList(Block(width, 6) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def transformer() -> tuple[clew.Tensor, nn.Module]:
    model = GPT()
    tokens = clew.randint(0, 1000, (4, 64))
    logits = model(tokens)
    return nn.CrossEntropyLoss()(logits.flatten(0, 1), tokens.flatten()), model


class TreeLSTM(nn.Module):
    """Composes the vectors of a binary tree from its leaves to its root."""

    def __init__(self, words: int = 100, width: int = 32) -> None:
        super().__init__()
        self.words = nn.Embedding(words, 2 * width)
        self.gates = nn.Linear(2 * width, 5 * width)

    def forward(self, tree):
        if isinstance(tree, int):
            return self.words(clew.tensor([tree])).chunk(2, dim=-1)
        (h1, c1), (h2, c2) = self.forward(tree[0]), self.forward(tree[1])
        i, o, u, f1, f2 = self.gates(clew.cat([h1, h2], dim=-1)).chunk(5, dim=-1)
        c = i.sigmoid() * u.tanh() + f1.sigmoid() * c1 + f2.sigmoid() * c2
        return o.sigmoid() * c.tanh(), c


def lopsided(size: int):
    if size == 1:
        return 7
    return lopsided(max(1, size // 3)), lopsided(size - max(1, size // 3))


def tree() -> tuple[clew.Tensor, nn.Module]:
    model = TreeLSTM()
    h, _ = model(lopsided(120))
    return h.square().mean(), model


def loop() -> tuple[clew.Tensor, None]:
    wx, wh = clew.randn(8, 32, requires_grad=True), clew.randn(32, 32, requires_grad=True)
    b = clew.zeros(32, requires_grad=True)
    h = clew.zeros(16, 32)
    loss = clew.zeros(())
    for _ in range(500):
        x = clew.randn(16, 8)
        h = clew.tanh(x @ wx + h @ wh + b)
        loss = loss + h.square().mean()
    return loss, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, help="also keep the pages in this folder")
    pages = parser.parse_args().pages
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pages or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for make in (transformer, tree, loop):
            clew.manual_seed(0)
            loss, model = make()
            graph = clew.graph(loss, model=model)
            picture = IMAGES / f"graph_{make.__name__}.svg"
            graph.save(picture)
            graph.save(folder / f"graph_{make.__name__}.html")
            print(f"{picture.name}: {len(graph.nodes):,} nodes, {picture.stat().st_size:,} bytes")
        screenshots(folder)


def screenshots(folder: Path) -> None:
    from browser import BINARY, Browser

    if BINARY is None:
        print("no Chromium: no screenshots of the pages")
        return
    browser = Browser(1280, 800)
    for name, dark, sought in (
        ("transformer", False, "AttentionB"),
        ("tree", True, "cat"),
        ("loop", False, "tanh"),
    ):
        browser.open(folder / f"graph_{name}.html", dark)
        browser.run(
            "(() => {const box = document.getElementById('search');"
            f"box.value = {sought!r}; box.dispatchEvent(new Event('input'))}})()"
        )
        if name == "tree":
            browser.run("document.getElementById('fit').click()")
        (IMAGES / f"graph_{name}_page.png").write_bytes(browser.screenshot())
    browser.close()


if __name__ == "__main__":
    main()
