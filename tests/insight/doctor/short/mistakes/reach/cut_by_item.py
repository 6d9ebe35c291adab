# mistake: cut off
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.out = nn.Linear(4, 1), nn.Linear(4, 1)
    def forward(self, x):
        scale = self.gate(x).mean().item()  #- here
        scale = self.gate(x).mean()  #+
        return self.out(x) * scale
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
