"""fastai: a Learner on tensors, with and without workers."""

import torch
from fastai.callback.schedule import Learner
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.losses import CrossEntropyLossFlat
from fastai.metrics import accuracy

if __name__ == "__main__":
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,)))
    for workers in (0, 2):
        loaders = DataLoaders(*(DataLoader(data, bs=8, num_workers=workers) for _ in range(2)))
        torch.manual_seed(1)
        learner = Learner(
            loaders, torch.nn.Linear(4, 2), loss_func=CrossEntropyLossFlat(), metrics=accuracy
        )
        with learner.no_bar(), learner.no_logging():
            learner.fit_one_cycle(2, 0.1)
            predicted = learner.get_preds()[0]
        print(f"workers{workers}", *map(float, learner.recorder.values[-1]))
        print(f"predicted{workers}", *predicted[0].tolist())
