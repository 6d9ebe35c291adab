class Windows(Dataset):
    def __init__(self, series, past=12):
        self.series, self.past = series, past

    def __len__(self):
        return len(self.series) - self.past

    def __getitem__(self, i):
        return self.series[i : i + self.past, None], self.series[i + self.past, None]

class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])

series = torch.sin(torch.arange(200) / 7) + 0.05 * torch.randn(200)
train, test = Windows(series[:150]), Windows(series[150:])
model = LSTM()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(2):
    model.train()
    for x, y in DataLoader(train, batch_size=23, shuffle=False):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        errors = [(model(x) - y).abs().mean().item() for x, y in DataLoader(test, batch_size=19)]
