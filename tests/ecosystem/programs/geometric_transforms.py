"""torch_geometric: models for graphs of several kinds, workers, sparse features and attributes."""

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, Linear, SAGEConv, to_hetero, to_hetero_with_bases
from torch_geometric.utils import to_torch_csr_tensor

both = HeteroData()
torch.manual_seed(0)
both["user"].x, both["film"].x = torch.randn(5, 3), torch.randn(4, 3)
pairs = torch.tensor([[0, 1, 2, 3, 4, 0], [0, 1, 2, 3, 0, 2]])
both["user", "rates", "film"].edge_index = pairs
both["film", "rated", "user"].edge_index = pairs.flip(0)


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = SAGEConv((-1, -1), 4)
        self.second = SAGEConv((-1, -1), 2)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Skipping(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = GATConv((-1, -1), 4, add_self_loops=False)
        self.beside = Linear(-1, 4)

    def forward(self, x, edge_index):
        return torch.tanh(self.attention(x, edge_index) + self.beside(x))


def check(name, model):
    with torch.no_grad():
        model(both.x_dict, both.edge_index_dict)  # finds the shapes
    torch.manual_seed(1)
    for p in model.parameters():
        torch.nn.init.normal_(p)
    out = model(both.x_dict, both.edge_index_dict)
    loss = sum(x.pow(2).sum() for x in out.values())
    loss.backward()
    gradients = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    print(name, loss.item(), gradients)


def collated(batches):
    return [v for b in batches for v in (b.x.sum().item(), b.edge_index.sum().item())]


if __name__ == "__main__":
    check("hetero", to_hetero(Two(), both.metadata(), aggr="sum"))
    check("skipping", to_hetero(Skipping(), both.metadata()))
    bases = to_hetero_with_bases(Two(), both.metadata(), num_bases=2, in_channels={"x": 3})
    check("bases", bases)
    graphs = [
        Data(x=torch.full((i + 1, 2), float(i)), edge_index=torch.tensor([[0, i], [i, 0]]))
        for i in range(7)
    ]
    for workers in (0, 2):
        torch.manual_seed(2)
        loader = DataLoader(graphs, batch_size=3, shuffle=True, num_workers=workers)
        print(f"workers{workers}", *collated(loader))
    edges, attributes = torch.tensor([[0, 0, 1], [0, 2, 1]]), torch.arange(6.0).reshape(3, 2)
    matrix = to_torch_csr_tensor(edges, attributes, size=(3, 3))
    print("csr", *matrix.shape, *matrix.to_dense().flatten().tolist())
    torch.manual_seed(3)
    features = torch.eye(3).to_sparse()
    print("sparse", GCNConv(3, 2)(features, edges).sum().item())
