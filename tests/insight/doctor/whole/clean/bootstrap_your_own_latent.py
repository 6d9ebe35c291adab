def projector(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, o))

class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.online, self.predictor = projector(12, 8), projector(8, 8)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False

    @torch.no_grad()
    def update(self, tau=0.99):
        for o, t in zip(self.online.parameters(), self.target.parameters()):
            t.data = tau * t.data + (1 - tau) * o.data

    def forward(self, a, b):
        p = F.normalize(self.predictor(self.online(a)), dim=-1)
        with torch.no_grad():
            z = F.normalize(self.target(b), dim=-1)
        return 2 - 2 * (p * z.detach()).sum(-1)

model = BYOL()
optimizer = torch.optim.Adam(
    [*model.online.parameters(), *model.predictor.parameters()], lr=1e-3
)
x = torch.randn(96, 12)
for step in range(8):
    batch = x[torch.randint(0, 96, (32,))]
    a, b = batch + 0.1 * torch.randn_like(batch), batch + 0.1 * torch.randn_like(batch)
    loss = (model(a, b) + model(b, a)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.update()
