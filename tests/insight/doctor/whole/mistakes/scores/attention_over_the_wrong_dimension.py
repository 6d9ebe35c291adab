# mistake: softmax over a single value
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.score, self.out = nn.Linear(6, 12), nn.Linear(12, 1), nn.Linear(12, 2)
    def forward(self, x):
        h = torch.tanh(self.body(x))
        w = F.softmax(self.score(h), dim=-1)  #- here
        w = F.softmax(self.score(h), dim=1)  #+
        return self.out((w * h).sum(1))
net = Pool()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(16, 5, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0, 0] > 0).long()).backward()
    opt.step()
