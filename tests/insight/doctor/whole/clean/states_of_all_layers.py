class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bi = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.uni = nn.GRU(6, 8, num_layers=2, batch_first=True)
        self.fc = nn.Linear(32, 2)

    def forward(self, x):
        _, (h, _) = self.bi(x)
        _, g = self.uni(x)
        return self.fc(torch.cat([h[-2], h[-1], g[0], g[1]], 1))

net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(6):
    x = torch.randn(16, 7, 6)
    loss = F.cross_entropy(net(x), (x.mean((1, 2)) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
