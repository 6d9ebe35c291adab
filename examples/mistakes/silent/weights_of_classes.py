import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(200, 5)
y = (torch.rand(200) < 0.1).long()
weights = 1 / torch.bincount(y).float()
sampler = torch.utils.data.WeightedRandomSampler(weights, num_samples=200)
data = torch.utils.data.TensorDataset(x, y)
net = nn.Linear(5, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for batch, labels in torch.utils.data.DataLoader(data, batch_size=20, sampler=sampler):
    opt.zero_grad()
    F.cross_entropy(net(batch), labels).backward()
    opt.step()
