class SAM:
    def __init__(self, params, base, rho=0.05, **kwargs):
        self.params = list(params)
        self.base, self.rho = base(self.params, **kwargs), rho

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm() + 1e-12
        self.moves = [p.grad * (self.rho / norm) for p in self.params]
        for p, e in zip(self.params, self.moves):
            p.add_(e)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, e in zip(self.params, self.moves):
            p.sub_(e)
        self.base.step()
        self.base.zero_grad()

x = torch.randn(120, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.05, momentum=0.9)
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True):
        F.cross_entropy(model(xb), yb).backward()
        optimizer.ascend()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.descend()
