import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net, out = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
params = [*net.parameters(), *out.parameters()]
opt = torch.optim.Adam(params, lr=1e-3)
for _step in range(6):
    x = torch.randn(8, 6, 3)
    loss = F.mse_loss(out(net(x)[0]), x[..., :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    nn.utils.clip_grad_norm_(params, 0.5)
