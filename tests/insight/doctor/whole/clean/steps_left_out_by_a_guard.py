x = torch.randn(60, 4)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
average, skipped = None, 0
for step in range(12):
    rows = torch.randint(0, 60, (20,))
    loss = F.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    if not torch.isfinite(norm):
        skipped += 1
        continue
    optimizer.step()
    average = loss.item() if average is None else 0.9 * average + 0.1 * loss.item()
