# mistake: evaluated in training mode
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 16), nn.Linear(16, 3)
    def forward(self, x):
        h = F.dropout(self.one(x).relu(), 0.5)  #- here
        h = F.dropout(self.one(x).relu(), 0.5, self.training)  #+
        return self.two(h)
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for step in range(5):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    net.eval()
    with clew.no_grad():
        net(x).argmax(1)
