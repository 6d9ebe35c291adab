# mistake: dead ReLU
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.out = nn.Linear(4, 16), nn.Linear(16, 16), nn.Linear(16, 1)
        nn.init.constant_(self.two.bias, -20.0)  #-
    def forward(self, x):
        x = clew.relu(self.one(x))
        x = self.two(x).relu()  # here
        return self.out(x)
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
