# mistake: broadcast
class Quantile(nn.Module):
    def __init__(self, q):
        super().__init__()
        self.q = q

    def forward(self, pred, target):
        e = target - pred  # here
        return torch.maximum(self.q * e, (self.q - 1) * e).mean()

class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 24), nn.Linear(24, 24), nn.Linear(24, 1)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.elu(layer(x))
        x = self.layers[-1](x)
        return x  #-
        return x[:, 0]  #+

model, criterion = Regressor(), Quantile(0.9)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
table = torch.randn(128, 5)
for epoch in range(3):
    for rows in table[torch.randperm(128)].split(32):
        loss = criterion(model(rows[:, :4]), rows[:, 4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
