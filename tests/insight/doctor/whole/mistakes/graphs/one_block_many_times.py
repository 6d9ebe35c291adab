# mistake: two modules are one
class Mixer(nn.Module):
    def __init__(self, depth=4, d=16):
        super().__init__()
        block = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU())
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            block = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU())  #+
            self.blocks.append(block)  # here
        self.head = nn.Linear(d, 2)

    def forward(self, x):
        for b in self.blocks:
            x = x + b(x)
        return self.head(x)

net = Mixer()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randn(32, 16)
    loss = F.cross_entropy(net(x), (x[:, 0] * x[:, 1] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
