class Finetuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(24, 3))
        for p in self.base.parameters():
            p.requires_grad_(False)

    def train(self, mode=True):
        self.training = mode
        self.base.eval()
        for part in self.head:
            part.train(mode)
        return self

    def forward(self, x):
        return self.head(self.base(x))

net = Finetuned()
opt = torch.optim.Adam(net.head.parameters(), lr=3e-3)
x = torch.randn(120, 6)
y = x[:, :3].argmax(1)
for epoch in range(3):
    net.train()
    for rows in torch.randperm(120).split(30):
        opt.zero_grad()
        F.cross_entropy(net(x[rows]), y[rows]).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        right = (net(x).argmax(1) == y).float().mean()
