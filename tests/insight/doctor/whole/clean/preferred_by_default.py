class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
        self.register_buffer("one", torch.tensor(1.0))

    def loss(self, better, worse, wanted=None):
        margin = (self.body(better) - self.body(worse)).squeeze(1)
        if wanted is None:
            wanted = self.one.expand_as(margin)
        return nn.BCEWithLogitsLoss()(margin, wanted)

judge = Judge()
way = torch.randn(6)
opt = torch.optim.Adam(judge.parameters(), lr=2e-3)
for step in range(15):
    a, b = torch.randn(2, 40, 6)
    first = ((a - b) @ way > 0)[:, None]
    loss = judge.loss(torch.where(first, a, b), torch.where(first, b, a))
    opt.zero_grad()
    loss.backward()
    opt.step()
