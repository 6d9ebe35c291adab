class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.score, self.fc = nn.Embedding(20, 16), nn.Linear(16, 1), nn.Linear(16, 2)

    def forward(self, ids):
        h = self.emb(ids)
        s = self.score(h).squeeze(-1).masked_fill(ids == 0, float("-inf"))
        w = torch.nan_to_num(torch.softmax(s, 1), nan=0.0)
        return self.fc((w.unsqueeze(-1) * h).sum(1))

net = Pool()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(6):
    ids = torch.randint(1, 20, (16, 6))
    ids[0] = 0
    loss = F.cross_entropy(net(ids), ids[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
