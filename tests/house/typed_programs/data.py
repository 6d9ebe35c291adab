"""Data: datasets of dicts, batches made by hand, samplers, streams, sequences of any length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

import clew
from clew import Tensor, nn
from clew.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from clew.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    Subset,
    WeightedRandomSampler,
    random_split,
)


class Item(TypedDict):
    words: Tensor
    label: int


class Batch(TypedDict):
    words: Tensor
    lengths: Tensor
    labels: Tensor


class Sentences(Dataset[Item]):
    def __init__(self, n: int) -> None:
        self.items: list[Item] = [
            {"words": clew.randint(1, 20, (1 + i % 5,)), "label": i % 2} for i in range(n)
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Item:
        return self.items[index]


class Count(IterableDataset[int]):
    def __init__(self, end: int) -> None:
        self.end = end

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.end))


class ByLength(Sampler[list[int]]):
    """Batches of neighbours in length."""

    def __init__(self, lengths: Sequence[int], size: int) -> None:
        self.order = sorted(range(len(lengths)), key=lambda i: lengths[i])
        self.size = size

    def __iter__(self) -> Iterator[list[int]]:
        for i in range(0, len(self.order), self.size):
            yield self.order[i : i + self.size]

    def __len__(self) -> int:
        return -(-len(self.order) // self.size)


def collate(items: list[Item]) -> Batch:
    return {
        "words": pad_sequence([x["words"] for x in items], batch_first=True),
        "lengths": clew.tensor([len(x["words"]) for x in items]),
        "labels": clew.tensor([x["label"] for x in items]),
    }


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8, padding_idx=0)
        self.gru = nn.GRU(8, 8, batch_first=True, bidirectional=True)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(
            self.words(words), lengths, batch_first=True, enforce_sorted=False
        )
        out, _ = self.gru(packed)
        padded, sizes = pad_packed_sequence(out, batch_first=True)
        mask = clew.arange(padded.shape[1])[None] < sizes[:, None]
        mean: Tensor = (padded * mask.unsqueeze(-1)).sum(1) / sizes[:, None]
        return mean


def main() -> None:
    clew.manual_seed(0)
    data = Sentences(30)
    train, held = random_split(data, [24, 6], generator=clew.Generator().manual_seed(1))
    reader = Reader()
    batch: Batch
    for batch in DataLoader(train, batch_size=8, shuffle=True, collate_fn=collate):
        print(reader(batch["words"], batch["lengths"]).shape, batch["labels"].sum().item())
    sampler = ByLength([len(data[i]["words"]) for i in range(len(data))], 10)
    for batch in DataLoader(data, batch_sampler=sampler, collate_fn=collate):
        assert batch["lengths"].max() - batch["lengths"].min() <= 2
    weighted = WeightedRandomSampler([1.0, 3.0] * 15, num_samples=10)
    few = DataLoader(data, sampler=weighted, batch_size=None)
    print(sum(item["label"] for item in few), len(Subset(data, [0, 1])), len(held))
    print(len(ConcatDataset([data, held])), sum(int(x.sum()) for x in DataLoader(Count(5))))


if __name__ == "__main__":
    main()
