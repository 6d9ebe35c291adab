# mistake: labels outside
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return self.f(x)

tower = Tower()
loss_fn = nn.CosineEmbeddingLoss(margin=0.2)
opt = torch.optim.Adam(tower.parameters(), lr=1e-3)
for step in range(10):
    a = torch.randn(48, 9)
    same = (torch.rand(48) < 0.5).long()
    b = torch.where(same[:, None] == 1, a + 0.1 * torch.randn(48, 9), torch.randn(48, 9))
    loss = loss_fn(tower(a), tower(b), same)  #- here
    loss = loss_fn(tower(a), tower(b), 2 * same - 1)  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
