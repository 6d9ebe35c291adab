# mistake: labels outside
class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)

rows = np.random.default_rng(5).normal(size=(90, 5)).astype("float32")
answers = np.where(rows[:, 0] > 0, 2, 1)
x = torch.from_numpy(rows)
y = torch.from_numpy(answers).float()
y = y - 1  #+
model = Scorer()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)  # here
        loss.backward()
        optimizer.step()
