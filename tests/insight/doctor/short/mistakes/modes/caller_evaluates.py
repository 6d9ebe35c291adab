# mistake: evaluated in training mode
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.norm, self.two = nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Linear(16, 3)
        self.drop = nn.Dropout(0.2)
    def forward(self, x):
        h = self.norm(self.one(x)).relu()
        return self.two(self.drop(h))
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.1)
def evaluate():
    net.eval()  #+
    with clew.no_grad():
        hits = (net(x).argmax(1) == labels).sum()  # here
    net.train()
    return hits
for epoch in range(2):
    for step in range(5):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    evaluate()
