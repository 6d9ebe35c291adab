class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.features = self.body
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.features(x))

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for i in range(12):
    x = torch.randn(8, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
