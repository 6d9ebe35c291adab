"""Loaders whose place in the data is saved and taken up, with and without workers; nodes."""

import torch
import torchdata.nodes
from torchdata.stateful_dataloader import StatefulDataLoader


class Shares(torch.utils.data.IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(torch.arange(first, 20, step).double())


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 17

    def __getitem__(self, i):
        return torch.tensor(i * i)


def digest(batches):
    """The order counts, too."""
    items = torch.cat([b.double().flatten() for b in batches])
    return float((items * torch.arange(1, len(items) + 1)).sum())


def square(x):
    return torch.tensor(x * x)


def main():
    for workers in (0, 2):
        for dataset, shuffle in ((Shares(), None), (Squares(), True)):
            torch.manual_seed(0)
            options = {"batch_size": 3, "shuffle": shuffle, "num_workers": workers}
            loader = StatefulDataLoader(dataset, **options)
            batches = iter(loader)
            first = [next(batches) for _ in range(3)]
            state = loader.state_dict()
            rest = list(batches)
            other = StatefulDataLoader(dataset, **options)
            other.load_state_dict(state)
            again = list(other)
            kind = f"{type(dataset).__name__}_{workers}"
            print(kind, digest(first), digest(rest), digest(again), digest(list(other)))
            if workers:
                kept = StatefulDataLoader(dataset, persistent_workers=True, **options)
                print(f"{kind}_kept", digest(list(kept)), digest(list(kept)))
    node = torchdata.nodes.IterableWrapper(range(10))
    node = torchdata.nodes.ParallelMapper(node, square, num_workers=2, method="thread")
    node = torchdata.nodes.Prefetcher(torchdata.nodes.Batcher(node, 4), prefetch_factor=2)
    batches = [torch.stack(batch) for batch in torchdata.nodes.Loader(node)]
    print("nodes", len(batches), digest(batches))


if __name__ == "__main__":
    main()
