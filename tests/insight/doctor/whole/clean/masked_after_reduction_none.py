class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(30, 16, padding_idx=0)
        self.r, self.o = nn.GRU(16, 24, batch_first=True), nn.Linear(24, 30)
    def forward(self, x):
        return self.o(self.r(self.e(x))[0])
net = LM()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randint(1, 30, (16, 10))
    lengths = torch.randint(4, 10, (16,))
    x[torch.arange(10)[None] >= lengths[:, None]] = 0
    logits, y = net(x[:, :-1]), x[:, 1:]
    keep = y != 0
    loss = F.cross_entropy(logits[keep], y[keep])
    each = F.cross_entropy(logits.transpose(1, 2), y, reduction="none")
    loss = loss + (each * keep).sum() / keep.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
