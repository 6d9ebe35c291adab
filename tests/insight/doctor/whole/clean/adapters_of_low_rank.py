class Low(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = nn.Parameter(torch.ones(base.out_features))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.t() @ self.b.t())

class Gate(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.body, self.gate = nn.Linear(d, d), nn.Linear(d, d)
        nn.init.zeros_(self.gate.weight)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x):
        g = torch.sigmoid(self.gate(x))
        return g * torch.relu(self.body(x)) + (1 - g) * x

net = nn.Sequential(Low(nn.Linear(6, 16)), nn.ReLU(), Gate(16), Low(nn.Linear(16, 3)))
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-3)
x = torch.randn(128, 6)
y = x[:, :3].argmax(1)
for step in range(16):
    i = torch.randint(0, 128, (32,))
    loss = F.cross_entropy(net(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
