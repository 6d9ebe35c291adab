x = torch.randn(100, 6)
y = x[:, :1] - x[:, 1:2] ** 2
models, optimizers = [], []
for seed in range(3):
    torch.manual_seed(seed)
    models.append(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizers.append(torch.optim.Adam(models[-1].parameters(), lr=1e-3))
for epoch in range(4):
    for model, optimizer in zip(models, optimizers):
        rows = torch.randint(0, 100, (40,))
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
for model in models:
    model.eval()
with torch.no_grad():
    predictions = torch.stack([model(x) for model in models])
    mean, std = predictions.mean(0), predictions.std(0)
