class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 16), nn.Linear(16, 3)
    def forward(self, x):
        return self.two(F.dropout(self.one(x).relu(), 0.2, training=True))
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
net.eval()
with clew.no_grad():
    net(x).softmax(1)
