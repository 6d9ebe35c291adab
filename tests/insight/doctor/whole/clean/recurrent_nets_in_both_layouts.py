class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(5, 12)
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.fc(out[-1])

class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(5, 12, batch_first=True)
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.fc(h[-1])

class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.rnn = nn.LSTM(8, 16)
        self.out = nn.Linear(16, 20)

    def forward(self, x, state):
        y, state = self.rnn(self.embed(x).view(len(x), 1, -1), state)
        return self.out(y.view(len(x), -1)), tuple(s.detach() for s in state)

one, two, three = First(), Second(), Letters()
opt = torch.optim.Adam([p for m in (one, two, three) for p in m.parameters()], lr=2e-3)
text = torch.randint(0, 20, (400,))
state = None
for step in range(12):
    x = torch.randn(16, 9, 5)
    y = (x.sum((1, 2)) > 0).long()
    chunk = text[step * 20 : step * 20 + 21]
    logits, state = three(chunk[:-1], state)
    loss = F.cross_entropy(one(x.transpose(0, 1)), y) + F.cross_entropy(two(x), y)
    loss = loss + F.cross_entropy(logits, chunk[1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
