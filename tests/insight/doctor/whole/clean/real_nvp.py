class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        out = torch.cat([b, a] if self.flip else [a, b], 1)
        return out, s.sum(1)

flow = nn.ModuleList([Coupling(i % 2) for i in range(4)])
base = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
opt = torch.optim.Adam(flow.parameters(), lr=1e-3)
for step in range(12):
    th = torch.rand(128) * 3.14
    z = torch.stack([th.cos(), th.sin()], 1) + 0.05 * torch.randn(128, 2)
    logdet = 0
    for layer in flow:
        z, ld = layer(z)
        logdet = logdet + ld
    loss = -(base.log_prob(z) + logdet).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
