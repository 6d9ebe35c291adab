class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(12, 16), nn.Linear(16, 3)

    def forward(self, x, adjacency):
        x = F.relu(adjacency @ self.lin1(x))
        x = F.dropout(x, 0.5, training=self.training)
        return adjacency @ self.lin2(x)

nodes = 60
edges = (torch.rand(nodes, nodes) < 0.06).float()
a = ((edges + edges.T) > 0).float() + torch.eye(nodes)
d = a.sum(1).rsqrt()
adjacency = d[:, None] * a * d[None]
x, y = torch.randn(nodes, 12), torch.arange(nodes) // 20
order = torch.randperm(nodes)
train, val, test = order[:30], order[30:45], order[45:]
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(10):
    model.train()
    optimizer.zero_grad()
    out = model(x, adjacency)
    loss = F.cross_entropy(out[train], y[train])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        pred = model(x, adjacency).argmax(1)
        scores = [(pred[part] == y[part]).float().mean().item() for part in (train, val, test)]
