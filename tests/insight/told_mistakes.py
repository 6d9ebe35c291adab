"""A model that goes wrong, and what a message is to tell."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

import pytest

from clew import nn

notes = pytest.mark.skipif(sys.version_info < (3, 11), reason="notes come with Python 3.11")
columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="columns come with Python 3.11")


def marks_of(file: str) -> Callable[[str], re.Pattern[str]]:
    """What shows the only line of a file, or of this one, that ends in a mark."""

    def at(mark: str) -> re.Pattern[str]:
        found = []
        for path in (file, __file__):
            with open(path, encoding="utf-8") as f:
                lines = [i for i, line in enumerate(f, 1) if line.rstrip().endswith("# " + mark)]
            found += [(os.path.basename(path), i) for i in lines]
        assert len(found) == 1, (mark, found)
        name, line = found[0]
        return re.compile(rf"{re.escape(name)}:{line}\b")

    return at


def text_of(error: BaseException) -> str:
    return "\n  ".join([str(error), *getattr(error, "__notes__", [])])


def tells(error: BaseException, *facts: str | re.Pattern[str]) -> None:
    """Whether the message contains the facts, in this order."""
    text = text_of(error)
    start = 0
    for fact in facts:
        pattern = fact if isinstance(fact, re.Pattern) else re.compile(re.escape(fact))
        found = pattern.search(text, start)
        assert found, f"{fact} is missing after character {start} of:\n{text}"
        start = found.end()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x).relu()  # block


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)  # head
