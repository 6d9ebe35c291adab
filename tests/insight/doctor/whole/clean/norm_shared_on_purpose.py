class Block(nn.Module):
    def __init__(self, dim, norm=None, act=nn.ReLU()):
        super().__init__()
        self.norm = norm if norm is not None else nn.LayerNorm(dim)
        self.act = act
        self.a, self.b = nn.Linear(dim, 32), nn.Linear(32, dim)

    def forward(self, x):
        return x + self.b(self.act(self.a(self.norm(x))))

shared = nn.LayerNorm(16)
blocks = [Block(16, shared), Block(16, shared), Block(16)]
net = nn.Sequential(nn.Linear(6, 16), *blocks, nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
