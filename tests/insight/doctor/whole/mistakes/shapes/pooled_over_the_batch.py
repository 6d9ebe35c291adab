# mistake: softmax over the wrong dimension
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.score, self.out = nn.Linear(6, 12), nn.Linear(12, 1), nn.Linear(12, 2)
    def forward(self, x):
        h = torch.tanh(self.body(x))
        s = self.score(h).squeeze(-1)
        w = F.softmax(s, dim=0)  #- here
        w = F.softmax(s, dim=1)  #+
        return self.out((w.unsqueeze(-1) * h).sum(1))
net = Pool()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(16, 5, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0, 0] > 0).long()).backward()
    opt.step()
