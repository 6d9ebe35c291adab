# mistake: plain dict
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = {"a": nn.Parameter(clew.randn(4, 4))}  #- here
        self.w = nn.ParameterDict({"a": nn.Parameter(clew.randn(4, 4))})  #+
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        return self.out(x @ self.w["a"])
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.02)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
