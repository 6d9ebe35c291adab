import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])


class Slow(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        time.sleep(0.002)
        return x[i], target[i]


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for inputs, y in DataLoader(Slow(), batch_size=6, shuffle=True):
    opt.zero_grad()
    F.mse_loss(net(inputs), y).backward()
    opt.step()
