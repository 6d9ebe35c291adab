class Auto(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 12)
        self.enc = nn.GRU(12, 24, batch_first=True)
        self.dec = nn.GRU(12, 24, batch_first=True)
        self.out = nn.Linear(24, 20)

    def forward(self, x):
        _, h = self.enc(self.embed(x))
        start = torch.zeros(len(x), 1, dtype=torch.long)
        y, _ = self.dec(self.embed(torch.cat([start, x[:, :-1]], 1)), h)
        return self.out(y)

class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(21, 16)
        self.pos = nn.Parameter(torch.zeros(1, 10, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.out = nn.Linear(16, 20)

    def forward(self, x):
        return self.out(self.layer(self.embed(x) + self.pos))

auto, masked = Auto(), Masked()
opt = torch.optim.Adam([*auto.parameters(), *masked.parameters()], lr=1e-3)
for step in range(12):
    x = torch.randint(1, 20, (16, 10))
    hidden = torch.rand(16, 10) < 0.2
    seen = x.masked_fill(hidden, 20)
    labels = x.masked_fill(~hidden, -100)
    loss = F.cross_entropy(auto(x).flatten(0, 1), x.flatten())
    loss = loss + F.cross_entropy(masked(seen).flatten(0, 1), labels.flatten(), ignore_index=-100)
    opt.zero_grad()
    loss.backward()
    opt.step()
