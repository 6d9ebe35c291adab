# mistake: only the last of several losses
class Cell(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(3, hidden), nn.Linear(hidden, 3)

    def forward(self, x, state):
        h, c = self.cell(x, state)
        return self.out(h), (h, c)

model, mse = Cell(), nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    series = torch.randn(8, 16, 3).cumsum(0) / 3
    state = (torch.zeros(16, 12), torch.zeros(16, 12))
    optimizer.zero_grad()
    loss = 0.0  #+
    for t in range(len(series) - 1):
        guess, state = model(series[t], state)
        loss = mse(guess, series[t + 1])  #-
        loss = loss + mse(guess, series[t + 1])  #+
    loss.backward()  # here
    optimizer.step()
