"""Sequences of 3 to 60 words in one ragged batch, without padding, through an LSTM and attention.

The task: two authors write with the same words, equally often, but in another order. Who wrote
this? The longer a text is, the surer one can be.
"""

from __future__ import annotations

import random
import time
from typing import Any

import clew
import clew.nn.functional as F
from clew import nn, optim

WORDS = 12


def make(count: int, seed: int) -> tuple[list[clew.Tensor], clew.Tensor]:
    """Texts of word numbers, and their authors 0 and 1.

    Both authors often name the next or the last but one word; of the first author that is the one
    after, of the second the one before, in the alphabet.
    """
    rng = random.Random(seed)
    texts, authors = [], []
    for i in range(count):
        author, text = i % 2, [rng.randrange(WORDS)]
        for _ in range(int(3 * 20 ** rng.random()) - 1):  # log-uniform: many short, few long
            step = (1, -1)[author] if rng.random() < 0.5 else rng.randrange(WORDS)
            text.append((text[-1] + step) % WORDS)
        texts.append(clew.tensor(text))
        authors.append(author)
    return texts, clew.tensor(authors)


class Reader(nn.Module):
    """An LSTM reads; attention chooses where in each text to look."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.look = nn.Linear(width, 1)
        self.out = nn.Linear(width, 2)

    def forward(self, text: clew.Tensor) -> clew.Tensor:
        """Scores of the authors, (texts, 2), for ragged texts (texts, ragged)."""
        h = self.lstm(self.words(text))[0]  # (texts, ragged, width)
        return self.out((h * self.look(h).softmax(1)).sum(1))

    def one(self, text: clew.Tensor) -> clew.Tensor:
        """The same for a single text (words,), for comparison."""
        h = self.lstm(self.words(text))[0]
        return self.out((h * self.look(h).softmax(0)).sum(0))


def train(steps: int = 120, batch: int = 64, seed: int = 0, ragged: bool = True) -> dict[str, Any]:
    """Trains on texts; returns model, losses, and the accuracies for short and long other texts."""
    clew.manual_seed(seed)
    texts, authors = make(2000, seed)
    rng, model = random.Random(seed), Reader()
    optimizer, losses = optim.Adam(model.parameters(), lr=5e-3), []
    for _ in range(steps):
        part = rng.sample(range(len(texts)), batch)
        if ragged:
            scores = model(clew.nested.as_nested_tensor([texts[i] for i in part]))
        else:
            scores = clew.stack([model.one(texts[i]) for i in part])
        loss = F.cross_entropy(scores, authors[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    others, answers = make(400, seed + 1)
    with clew.no_grad():
        right = model(clew.nested.as_nested_tensor(others)).argmax(1) == answers
    long = clew.tensor([len(t) >= 15 for t in others])
    lengths = [len(t) for t in others]
    return {
        "model": model,
        "losses": losses,
        "short": right[~long].float().mean().item(),
        "long": right[long].float().mean().item(),
        "words": sum(lengths) / (max(lengths) * len(lengths)),
    }


if __name__ == "__main__":
    for way in (False, True):
        begun = time.perf_counter()
        found = train(steps=120 if way else 10, ragged=way)
        seconds = (time.perf_counter() - begun) / len(found["losses"])
        print(f"{'ragged' if way else 'one by one'}: {1e3 * seconds:.1f} ms a step")
    print(f"loss {found['losses'][0]:.2f} to {found['losses'][-1]:.2f}")
    print(f"accuracy: {100 * found['short']:.0f}% of texts below 15 words, ", end="")
    print(f"{100 * found['long']:.0f}% of longer ones (chance 50%)")
    print(f"padded to one length, {100 * found['words']:.0f}% of the batch would be words")
