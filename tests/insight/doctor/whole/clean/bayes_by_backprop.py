class BayesLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(o, i) / math.sqrt(i))
        self.rho = nn.Parameter(torch.full((o, i), -4.0))
        self.bias = nn.Parameter(torch.zeros(o))

    def forward(self, x):
        sigma = F.softplus(self.rho)
        return F.linear(x, self.mu + sigma * torch.randn_like(sigma), self.bias)

    def kl(self):
        sigma = F.softplus(self.rho)
        return (0.5 * (sigma**2 + self.mu**2) - sigma.log() - 0.5).sum()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = BayesLinear(4, 16), BayesLinear(16, 1)

    def forward(self, x):
        return self.b(F.relu(self.a(x)))

x = torch.randn(80, 4)
y = x[:, :1] * x[:, 1:2]
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    prediction = model(x)
    loss = F.mse_loss(prediction, y, reduction="sum") + 0.01 * (model.a.kl() + model.b.kl())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    draws = torch.stack([model(x) for _ in range(5)])
    mean, spread = draws.mean(0), draws.std(0)
