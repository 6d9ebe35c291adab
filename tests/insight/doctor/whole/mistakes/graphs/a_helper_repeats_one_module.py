# mistake: they share their weights
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.ff = nn.LayerNorm(d), nn.Linear(d, d)
    def forward(self, x):
        return x + self.ff(self.norm(x)).relu()
def clones(layer, n):
    return nn.Sequential(*[layer for _ in range(n)])  #- here
    return nn.Sequential(*[copy.deepcopy(layer) for _ in range(n)])  #+
net = nn.Sequential(nn.Linear(6, 8), clones(Block(8), 3), nn.Linear(8, 2))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
