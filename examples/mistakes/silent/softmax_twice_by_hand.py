import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
labels = x[:, :3].argmax(1)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _step in range(8):
    log_probs = torch.log(torch.softmax(net(x), dim=1))
    loss = -log_probs[torch.arange(64), labels].mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
