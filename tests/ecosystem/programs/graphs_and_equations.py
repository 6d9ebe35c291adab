"""Graph convolutions, a differential equation, a metric, a rearrangement."""

import einops
import torch
import torchmetrics
from torch_geometric.nn import GATConv, GCNConv
from torchdiffeq import odeint

torch.manual_seed(0)
edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
nodes = torch.randn(4, 8)
for kind in (GCNConv, GATConv):
    torch.manual_seed(1)
    layer = kind(8, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        loss = layer(nodes, edges).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(kind.__name__, *losses)
field = torch.nn.Linear(2, 2)
print("ode", *odeint(lambda t, y: field(y), torch.ones(2), torch.tensor([0.0, 1.0]))[-1].tolist())
print("einops", *einops.rearrange(torch.arange(6), "(a b) -> (b a)", a=2).tolist())
metric = torchmetrics.Accuracy("multiclass", num_classes=3)
print("accuracy", metric(torch.tensor([0, 1, 2]), torch.tensor([0, 1, 1])).item())
