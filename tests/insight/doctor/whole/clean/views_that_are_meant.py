class Shuffle(nn.Module):
    def __init__(self, c, groups):
        super().__init__()
        self.groups = groups
        self.conv = nn.Conv2d(c, c, 3, padding=1, groups=groups)

    def forward(self, x):
        b, c, h, w = self.conv(x).shape
        y = self.conv(x).view(b, self.groups, c // self.groups, h, w)
        return F.relu(y.transpose(1, 2).reshape(b, c, h, w))

class Patches(nn.Module):
    def __init__(self, c, p, d):
        super().__init__()
        self.p, self.lin = p, nn.Linear(c * p * p, d)

    def forward(self, x):
        b, c, h, w = x.shape
        y = x.view(b, c, h // self.p, self.p, w // self.p, self.p)
        y = y.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * self.p * self.p)
        return self.lin(y)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 1)
        self.shuffle = Shuffle(8, 2)
        self.patches = Patches(8, 4, 16)
        self.query = nn.Parameter(torch.randn(4, 16))
        self.fc = nn.Linear(64, 5)

    def forward(self, x):
        t = self.patches(self.shuffle(self.stem(x)))
        b, n, d = t.shape
        h = t.view(b, n, 4, d // 4).transpose(1, 2)
        h = (h @ h.transpose(-1, -2)).softmax(-1) @ h
        h = h.transpose(1, 2).contiguous().view(b, n, d)
        a = (self.query @ h.transpose(1, 2)).softmax(-1) @ h
        return self.fc(a.view(b, -1))

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    x, y = torch.randn(8, 3, 8, 8), torch.randint(0, 5, (8,))
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
