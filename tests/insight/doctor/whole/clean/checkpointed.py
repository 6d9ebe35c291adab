from clew.utils.checkpoint import checkpoint

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(8, 32)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.1))
            for _ in range(4)
        )
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + checkpoint(b, h, use_reentrant=False)
        return self.out(h)

net = Deep()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randn(32, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > x[:, 1]).long()).backward()
    opt.step()
