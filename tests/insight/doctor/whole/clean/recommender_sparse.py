class MF(nn.Module):
    def __init__(self, users=200, items=300, d=8):
        super().__init__()
        self.u, self.i = nn.Embedding(users, d, sparse=True), nn.Embedding(items, d, sparse=True)
        self.bu, self.bi = nn.Embedding(users, 1, sparse=True), nn.Embedding(items, 1, sparse=True)
        for e in (self.u, self.i):
            nn.init.normal_(e.weight, std=0.05)
        nn.init.zeros_(self.bu.weight)
        nn.init.zeros_(self.bi.weight)

    def forward(self, u, i):
        return (self.u(u) * self.i(i)).sum(1) + self.bu(u).squeeze(1) + self.bi(i).squeeze(1)

mf = MF()
opt = torch.optim.SparseAdam(list(mf.parameters()), lr=0.01)
for step in range(15):
    u, pos = torch.randint(0, 200, (64,)), torch.randint(0, 150, (64,))
    neg = torch.randint(0, 300, (64,))
    loss = -F.logsigmoid(mf(u, pos) - mf(u, neg)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
