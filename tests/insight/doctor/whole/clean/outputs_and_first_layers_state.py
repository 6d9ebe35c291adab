class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 8, num_layers=2)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        out, h = self.rnn(x)
        return self.fc(torch.cat([out[-1], h[0]], 1))

net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(6):
    x = torch.randn(7, 16, 6)
    loss = F.cross_entropy(net(x), (x.mean((0, 2)) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
