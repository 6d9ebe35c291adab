from clew.utils.data import WeightedRandomSampler

x = torch.cat([torch.randn(100, 4), torch.randn(12, 4) + 2])
y = torch.cat([torch.zeros(100), torch.ones(12)]).long()
weights = (1.0 / torch.bincount(y).float())[y]
sampler = WeightedRandomSampler(weights.tolist(), num_samples=112, replacement=True)
loader = DataLoader(TensorDataset(x, y), batch_size=28, sampler=sampler)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    hits = 0
    for xb, yb in loader:
        logits = model(xb)
        loss = criterion(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += int((logits.argmax(1) == yb).sum())
    accuracy = hits / 112
