# mistake: mask is inverted
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(25, 16)
        self.look = nn.MultiheadAttention(16, 2, batch_first=True)
        self.ask = nn.Parameter(torch.randn(1, 1, 16) * 0.1)
        self.tell = nn.Linear(16, 2)

    def forward(self, ids):
        there = ids.ne(0)
        hidden = torch.cat([there, there.new_ones(len(ids), 1)], 1)  #-
        hidden = torch.cat([~there, there.new_zeros(len(ids), 1)], 1)  #+
        x = torch.cat([self.words(ids), self.ask.expand(len(ids), 1, 16)], 1)
        seen, _ = self.look(x[:, -1:], x, x, key_padding_mask=hidden)  # here
        return self.tell(seen[:, 0])

ids = torch.randint(1, 25, (90, 9))
for row, length in enumerate(torch.randint(3, 9, (90,)).tolist()):
    ids[row, length:] = 0
y = (ids[:, 0] > 12).long()
net = Reader()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(3):
    for rows in torch.randperm(90).split(30):
        opt.zero_grad()
        F.cross_entropy(net(ids[rows]), y[rows]).backward()
        opt.step()
