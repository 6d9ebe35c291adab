class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.k = nn.Linear(5, 12), nn.Linear(12, 12)
        self.q = nn.Parameter(torch.randn(12) * 0.2)
        self.o = nn.Linear(12, 2)
    def forward(self, x):
        h = torch.tanh(self.f(x))
        w = F.softmax(self.k(h) @ self.q, dim=1)
        a = (w.unsqueeze(1) @ h).squeeze(1)
        w2 = F.softmax(h.mean(-1, keepdim=True), dim=1)
        return self.o(a + (w2 * h).sum(1) + (w2.transpose(1, 2) @ h).squeeze(1))
net = Pool()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randn(16, 7, 5)
    loss = F.cross_entropy(net(x), (x.mean((1, 2)) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
