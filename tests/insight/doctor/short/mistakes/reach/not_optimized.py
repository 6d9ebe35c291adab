# mistake: in no optimizer
body = nn.Linear(4, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)
    def forward(self, x):
        return self.head(self.body(x).relu())
net = Net()
opt = clew.optim.SGD(net.head.parameters(), lr=0.02)  #- here
opt = clew.optim.SGD(net.parameters(), lr=0.02)  #+
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
