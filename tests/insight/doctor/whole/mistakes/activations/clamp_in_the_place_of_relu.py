# mistake: dead ReLU
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 24), nn.Linear(24, 1)
        nn.init.constant_(self.a.bias, -15)  #-
    def forward(self, x):
        return self.b(self.a(x).clamp(min=0))  # here
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(6):
    x = torch.randn(32, 6)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
