# mistake: slope is infinite
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 16)
        self.score = nn.Linear(16, 1)
        self.fc = nn.Linear(16, 2)

    def forward(self, ids):
        h = self.emb(ids)
        s = self.score(h).squeeze(-1).masked_fill(ids == 0, float("-inf"))  #-
        s = self.score(h).squeeze(-1).masked_fill(ids == 0, -1e9)  #+
        w = torch.softmax(s, 1)  # here
        return self.fc((w.unsqueeze(-1) * h).sum(1))

net = Pool()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(6):
    ids = torch.randint(1, 20, (16, 6))
    ids[0] = 0  # an empty text
    ids[1, 3:] = 0
    loss = F.cross_entropy(net(ids), ids[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
