# mistake: kept with their graphs
class Meter:
    def __init__(self):
        self.values = {"train": [], "valid": []}

    def update(self, split, value):
        self.values[split].append(value)

    def mean(self, split):
        return sum(float(v) for v in self.values[split]) / len(self.values[split])

class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.layers(x)

model, meter = MLP(), Meter()
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(120, 12)
y = x[:, :3].argmax(1)
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update("train", loss)  #-
        meter.update("train", loss.detach())  #+
