# mistake: two modules are one
class Block(nn.Module):
    def __init__(self, dim, norm=nn.LayerNorm(16)):  #- here
    def __init__(self, dim, norm=nn.LayerNorm):  #+
        super().__init__()
        self.norm = norm  #-
        self.norm = norm(dim)  #+
        self.ff = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))

net = nn.Sequential(nn.Linear(6, 16), Block(16), Block(16), Block(16), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
