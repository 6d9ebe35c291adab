# mistake: share their weights
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4)] * 3)  #- here
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])  #+
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return self.out(x)
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
