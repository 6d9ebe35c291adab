"""A line through points, by gradient descent: the smallest PyTorch training loop."""

import torch
from torch import nn, optim

torch.manual_seed(0)

x = torch.linspace(-1, 1, 100).unsqueeze(1)
y = 3 * x + 0.5 + 0.1 * torch.randn(100, 1)

model = nn.Linear(1, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.MSELoss()

for epoch in range(100):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()

print(f"slope {model.weight.item():.2f}, offset {model.bias.item():.2f}, loss {loss.item():.4f}")
assert abs(model.weight.item() - 3) < 0.1 and abs(model.bias.item() - 0.5) < 0.1
