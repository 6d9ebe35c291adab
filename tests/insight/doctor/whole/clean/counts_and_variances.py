class Rates(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.Softplus())
        self.rate, self.mean, self.var = nn.Linear(16, 1), nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, x):
        h = self.body(x)
        return self.rate(h), self.mean(h), F.softplus(self.var(h)) + 1e-6

x = torch.randn(90, 4)
counts = torch.poisson(x[:, :1].exp())
amount = x[:, 1:2] + 0.2 * torch.randn(90, 1)
model = Rates()
poisson, gaussian = nn.PoissonNLLLoss(log_input=True), nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(9):
    rows = torch.randint(0, 90, (30,))
    rate, mean, var = model(x[rows])
    loss = poisson(rate, counts[rows]) + gaussian(mean, amount[rows], var)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
