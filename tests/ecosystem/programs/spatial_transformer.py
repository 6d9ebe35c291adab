"""A spatial transformer, whose first maps are the identity, and a tensorboard graph."""

import tempfile

import tensorboard  # noqa: F401
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.where = nn.Sequential(
            nn.Conv2d(1, 4, 7), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(484, 6)
        )
        self.what = nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(2304, 10))
        nn.init.zeros_(self.where[-1].weight)
        self.where[-1].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))

    def forward(self, x):
        grid = F.affine_grid(self.where(x).view(-1, 2, 3), x.size(), align_corners=False)
        return self.what(F.grid_sample(x, grid, align_corners=False))


model, images, labels = Net(), torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for _ in range(5):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", *losses)
with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    writer.add_graph(model, images)
print("graph", 1)
