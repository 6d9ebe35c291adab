# mistake: never initialised
class GraphConv(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(a, b))  #- here
        self.weight = nn.Parameter(torch.randn(a, b) / a**0.5)  #+
        self.bias = nn.Parameter(torch.zeros(b))

    def forward(self, x, adjacency):
        return adjacency @ (x @ self.weight) + self.bias

class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = GraphConv(6, 16), GraphConv(16, 3)

    def forward(self, x, adjacency):
        return self.two(F.relu(self.one(x, adjacency)), adjacency)

edges = (torch.rand(30, 30) < 0.15).float()
adjacency = ((edges + edges.T + torch.eye(30)) > 0).float()
adjacency = adjacency / adjacency.sum(1, keepdim=True)
x = torch.randn(30, 6)
y = (adjacency @ x)[:, :3].argmax(1)
net = GCN()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(10):
    optimizer.zero_grad()
    F.cross_entropy(net(x, adjacency)[:20], y[:20]).backward()
    optimizer.step()
