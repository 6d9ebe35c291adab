class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(6, 6, 3, padding=1)
        self.fc = nn.Linear(6, 2)

    def both(self, x):
        return self.conv(x.transpose(1, 2)), x.mean()

    def forward(self, x):
        b, t, c = x.shape
        x, mean = self.both(x)
        return self.fc(x.reshape(b, c, t).mean(2)) + mean

net = Layer()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(6):
    loss = F.cross_entropy(net(torch.randn(8, 9, 6)), torch.randint(0, 2, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
