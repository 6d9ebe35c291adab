"""spikingjelly: a spiking network over time steps with surrogate gradients."""

import torch
from spikingjelly.activation_based import encoding, functional, layer, neuron, surrogate
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    layer.Linear(16, 12, bias=False),
    neuron.LIFNode(tau=2.0, surrogate_function=surrogate.ATan()),
    layer.Linear(12, 4, bias=False),
    neuron.IFNode(surrogate_function=surrogate.Sigmoid()),
)
encoder = encoding.PoissonEncoder()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.rand(8, 16), torch.randint(0, 4, (8,))
losses = []
for _ in range(3):
    rate = sum(net(encoder(x)) for _ in range(4)) / 4
    loss = nn.functional.mse_loss(rate, nn.functional.one_hot(y, 4).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    functional.reset_net(net)
    losses.append(loss.item())
print("steps", *losses)
functional.set_step_mode(net, "m")
out = net(torch.rand(4, 8, 16))
print("many", *out.mean((0, 1)).tolist())
