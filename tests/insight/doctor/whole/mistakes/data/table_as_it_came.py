# mistake: not normalised
class Table(Dataset):
    def __init__(self, rows=120):
        source = np.random.default_rng(1)
        income = source.normal(52000, 9000, rows)
        area = source.normal(1400, 300, rows)
        year = source.integers(1950, 2020, rows)
        self.x = np.stack([income, area, year], 1).astype("float32")
        self.y = (income / 50000 + area / 1400).astype("float32")[:, None]
        self.x = (self.x - self.x.mean(0)) / self.x.std(0)  #+

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.from_numpy(self.y[i])

model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.L1Loss()
for epoch in range(3):
    for features, price in DataLoader(Table(), batch_size=30, shuffle=True):
        output = model(features)  # here
        loss = criterion(output, price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
