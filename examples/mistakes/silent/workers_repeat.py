import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Noisy(Dataset):
    def __init__(self):
        self.random = np.random.RandomState(0)

    def __len__(self):
        return 32

    def __getitem__(self, i):
        return self.random.randn(8).astype("float32")


net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Noisy(), batch_size=4, num_workers=2):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
