# mistake: broadcast
class Houses(Dataset):
    def __init__(self, rows=100):
        generator = np.random.default_rng(3)
        self.x = generator.normal(size=(rows, 5)).astype("float32")
        self.y = (self.x @ np.array([1.0, 2.0, -1.0, 0.5, 0.0])).astype("float32")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

def rmse(prediction, truth):
    return torch.sqrt(torch.mean((prediction - truth) ** 2))  # here

model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(Houses(), batch_size=25, shuffle=True)
for epoch in range(3):
    running = 0.0
    for inputs, prices in loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        outputs = outputs.squeeze(1)  #+
        loss = rmse(outputs, prices)
        loss.backward()
        optimizer.step()
        running += loss.item()
