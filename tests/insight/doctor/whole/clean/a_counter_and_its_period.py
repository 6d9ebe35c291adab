class Annealed(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 2)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
    def forward(self, x):
        self.steps += 1
        return self.out(x) if self.steps // 100 == 0 else self.out(x) / 2
net = Annealed()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
