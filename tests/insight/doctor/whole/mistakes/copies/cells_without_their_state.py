# mistake: never gets its state
class Forecaster(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, series):
        state = None  #+
        for value in series:
            y, _ = self.lstm(value.unsqueeze(0))  #- here
            y, state = self.lstm(value.unsqueeze(0), state)  #+
        return self.out(y[0]).squeeze(-1)

model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(12):
    series = torch.randn(7, 20, 2)
    target = series[:, :, 0].mean(0)
    loss = F.mse_loss(model(series), target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
