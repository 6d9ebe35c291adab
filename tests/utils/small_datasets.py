"""Data sets and a generator that tests of datasets and of loaders use."""

import clew
from clew.utils.data import Dataset, IterableDataset, get_worker_info


def seeded(n):
    g = clew.Generator()
    g.manual_seed(n)
    return g


class Squares(Dataset):
    def __init__(self, n=23):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return clew.tensor([i * i]), i


class Count(IterableDataset):
    def __init__(self, n, share=True, length=None):
        self.n, self.share, self.length = n, share, length

    def __iter__(self):
        info = get_worker_info()
        if info is None or not self.share:
            return iter(range(self.n))
        return iter(range(info.id, self.n, info.num_workers))

    def __len__(self):
        if self.length is None:
            raise TypeError("no length")
        return self.length
