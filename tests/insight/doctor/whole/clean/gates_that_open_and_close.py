class Hysteresis(nn.Module):
    def __init__(self):
        super().__init__()
        self.take, self.read = nn.Linear(2, 12), nn.Linear(12, 1)

    def forward(self, x):
        state = torch.zeros(len(x), 12)
        for now in x.unbind(1):
            state = torch.tanh(self.take(now) + state)
        return self.read(state)

net = Hysteresis()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(12):
    x = torch.randn(32, 12, 2)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, -3:, :1].mean(1)).backward()
    opt.step()
