# mistake: evaluated in training mode
class TwoStage(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Dropout(0.4))
        self.head = nn.Linear(24, 2)
        self.calls = 0

    def train(self, mode=True):  #- here
    def train(self, mode=True):  #+
        self.calls = 0
        self.training = bool(mode)  #-
        return super().train(mode)  #+
        return self  #-

    def forward(self, x):
        self.calls += 1
        return self.head(self.stem(x))

x = torch.randn(160, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
net = TwoStage()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(3):
    net.train()
    for rows in torch.randperm(120).split(30):
        opt.zero_grad()
        F.cross_entropy(net(x[rows]), y[rows]).backward()
        opt.step()
    net.train(False)
    with torch.no_grad():
        right = (net(x[120:]).argmax(1) == y[120:]).float().mean().item()
