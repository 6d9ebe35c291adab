class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.price, self.kind = nn.Linear(32, 1), nn.Linear(32, 3)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.price(h), self.kind(h)

x = torch.randn(120, 8)
price, kind = x[:, :1] * 2 - x[:, 1:2], x[:, 2:5].argmax(1)
model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    for rows in torch.randperm(120).split(40):
        p, k = model(x[rows])
        losses = torch.stack([F.mse_loss(p, price[rows]), F.cross_entropy(k, kind[rows])])
        loss = (torch.exp(-model.log_vars) * losses + model.log_vars).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
