"""torch_geometric: GCN on a graph's nodes, GIN on many graphs, loaders, pooling, transforms."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    GATv2Conv,
    GCNConv,
    GINConv,
    HeteroConv,
    SAGEConv,
    TransformerConv,
    global_add_pool,
    global_mean_pool,
)
from torch_geometric.utils import add_self_loops, degree, to_dense_adj, to_undirected

torch.manual_seed(0)
edges = to_undirected(torch.randint(0, 30, (2, 60)))
graph = Data(x=torch.randn(30, 8), edge_index=edges, y=torch.randint(0, 3, (30,)))
print("graph", graph.num_nodes, graph.num_edges, int(graph.has_isolated_nodes()))


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GCNConv(8, 16)
        self.conv2 = GCNConv(16, 3)

    def forward(self, data):
        x = F.relu(self.conv1(data.x, data.edge_index))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.conv2(x, data.edge_index), dim=1)


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = F.nll_loss(model(graph), graph.y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("gcn", *losses)
for kind in (SAGEConv, GATv2Conv, TransformerConv):
    torch.manual_seed(1)
    loss = kind(8, 4)(graph.x, edges).pow(2).mean()
    print(kind.__name__, loss.item())
torch.manual_seed(2)
graphs = []
for i in range(12):
    size = 4 + i % 5
    graphs.append(
        Data(
            x=torch.randn(size, 8),
            edge_index=torch.randint(0, size, (2, 3 * size)),
            y=torch.tensor([i % 2]),
        )
    )


class GIN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        one = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16))
        self.conv = GINConv(one, train_eps=True)
        self.norm = torch.nn.BatchNorm1d(16)
        self.last = torch.nn.Linear(32, 2)

    def forward(self, batch):
        x = F.relu(self.norm(self.conv(batch.x, batch.edge_index)))
        pools = [pool(x, batch.batch) for pool in (global_add_pool, global_mean_pool)]
        return self.last(torch.cat(pools, 1))


gin = GIN()
optimizer = torch.optim.Adam(gin.parameters(), lr=0.01)
losses = []
for batch in DataLoader(graphs, batch_size=4, shuffle=True):
    loss = F.cross_entropy(gin(batch), batch.y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("gin", *losses)
print("degree", *degree(edges[0], 30)[:8].tolist())
print("dense", to_dense_adj(add_self_loops(edges)[0]).sum().item())
both = HeteroData()
both["a"].x, both["b"].x = torch.randn(5, 4), torch.randn(6, 3)
both["a", "to", "b"].edge_index = torch.stack(
    [torch.randint(0, 5, (9,)), torch.randint(0, 6, (9,))]
)
layer = HeteroConv({("a", "to", "b"): SAGEConv((4, 3), 2)})
print("hetero", layer(both.x_dict, both.edge_index_dict)["b"].sum().item())
