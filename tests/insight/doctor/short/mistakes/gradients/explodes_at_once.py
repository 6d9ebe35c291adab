# mistake: vanish or explode
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(10))
        for layer in self.layers:
            nn.init.normal_(layer.weight)  #-
            nn.init.kaiming_normal_(layer.weight)  #+
    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()  # here
        return x
net, inputs = Net(), clew.rand(64, 32)
rate = 1e-12  #-
rate = 1e-3  #+
opt = clew.optim.SGD(net.parameters(), lr=rate)
for step in range(8):
    opt.zero_grad()
    F.mse_loss(net(inputs), inputs).backward()
    opt.step()
