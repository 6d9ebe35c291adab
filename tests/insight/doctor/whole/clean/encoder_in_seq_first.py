class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(30, 16)
        self.register_buffer("pe", torch.randn(64, 1, 16) * 0.1)
        self.t = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 1)
        self.f = nn.Linear(16, 3)
    def forward(self, x):
        h = self.e(x.transpose(0, 1)) * 4
        h = h + self.pe[: h.size(0)]
        h = self.t(h)
        return self.f(h[0]), self.f(h.mean(dim=0)), self.f(h).transpose(0, 1)[:, 0]
net = Enc()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randint(0, 30, (10, 6))
    y = x[:, 1] % 3
    loss = sum(F.cross_entropy(o, y) for o in net(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
