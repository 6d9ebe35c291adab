# mistake: plain list
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]  #- here
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])  #+
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh()
        return self.out(x)
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
