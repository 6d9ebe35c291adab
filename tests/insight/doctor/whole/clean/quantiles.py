class QuantileNet(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.register_buffer("quantiles", torch.tensor(quantiles))
        self.net = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, len(quantiles)))

    def forward(self, x):
        return self.net(x)

    def loss(self, prediction, target):
        error = target - prediction
        return torch.maximum(self.quantiles * error, (self.quantiles - 1) * error).mean()

x = torch.randn(150, 3)
y = x[:, :1] + 0.3 * torch.randn(150, 1)
model = QuantileNet([0.1, 0.5, 0.9])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True):
        loss = model.loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
