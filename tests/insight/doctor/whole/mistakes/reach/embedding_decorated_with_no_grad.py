# mistake: cut off
class ProtoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))
        self.scale = nn.Parameter(torch.tensor(1.0))

    @torch.no_grad()  #-
    def embed(self, x):
        return F.normalize(self.encoder(x), dim=-1)  # here

    def forward(self, support, query):
        centres = self.embed(support).mean(1)
        distances = ((self.embed(query)[:, None] - centres[None]) ** 2).sum(-1)
        return -self.scale * distances

def episode(ways=4, shots=3, queries=5):
    means = torch.randn(ways, 1, 12)
    support = means + 0.3 * torch.randn(ways, shots, 12)
    query = (means + 0.3 * torch.randn(ways, queries, 12)).reshape(-1, 12)
    return support, query, torch.arange(ways).repeat_interleave(queries)

net = ProtoNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(12):
    support, query, label = episode()
    loss = F.cross_entropy(net(support, query), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
