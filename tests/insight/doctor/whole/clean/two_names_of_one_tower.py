class Twin(nn.Module):
    def __init__(self, tower):
        super().__init__()
        self.left = tower
        self.right = tower

    def forward(self, a, b, c):
        return self.left(a), self.right(b), self.right(c)

twin = Twin(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8)))
opt = torch.optim.Adam(twin.parameters(), lr=2e-3)
centres = torch.randn(6, 10)
for step in range(20):
    c = torch.randint(0, 6, (32,))
    other = (c + torch.randint(1, 6, (32,))) % 6
    seen = [centres[k] + 0.4 * torch.randn(32, 10) for k in (c, c, other)]
    loss = F.triplet_margin_loss(*twin(*seen), margin=0.5)
    opt.zero_grad()
    loss.backward()
    opt.step()
