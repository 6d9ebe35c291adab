class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], 1), s.sum(1)

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(i % 2) for i in range(4)])
        self.prior = torch.distributions.Normal(0.0, 1.0)

    def log_prob(self, x):
        total = 0
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return self.prior.log_prob(x).sum(1) + total

data = torch.randn(200, 2) * torch.tensor([1.0, 0.3]) + torch.tensor([0.5, -0.5])
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
for step in range(8):
    loss = -flow.log_prob(data[torch.randint(0, 200, (64,))]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
