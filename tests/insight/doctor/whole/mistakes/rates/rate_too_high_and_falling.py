# mistake: learning rate
class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.net(x))

time_axis = torch.linspace(0, 20, 220)
wave = time_axis.sin() + 0.1 * torch.randn(220)
windows = wave.unfold(0, 9, 1)
x, y = windows[:, :8], windows[:, 8:]
model = Forecaster()
rate = 1.0  #-
rate = 1e-3  #+
optimizer = torch.optim.Adam(model.parameters(), lr=rate)  # here
losses = []
for epoch in range(4):
    for rows in torch.randperm(len(x)).split(53):
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
