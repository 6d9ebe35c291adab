# mistake: share their weights
class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return F.relu(x + self.norm(self.conv(x)))

def stack(block, times):
    return nn.Sequential(*(copy.copy(block) for _ in range(times)))  #- here
    return nn.Sequential(*(copy.deepcopy(block) for _ in range(times)))  #+

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.body = stack(Residual(8), 3)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for step in range(10):
    x = torch.randn(8, 3, 10, 10)
    y = x.mean((2, 3)).argmax(1)
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
