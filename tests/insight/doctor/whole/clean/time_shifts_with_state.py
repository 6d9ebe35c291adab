class World(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(3, 16), nn.Linear(16, 3)

    def forward(self, series, h):
        outputs = []
        for t in range(series.shape[0]):
            h = self.cell(series[t], h)
            outputs.append(self.out(h))
        return torch.stack(outputs), h

series = torch.randn(61, 8, 3).cumsum(0) * 0.1
model = World()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
losses = []
for epoch in range(2):
    h = torch.zeros(8, 16)
    for t in range(0, 60, 10):
        h = h.detach()
        prediction, h = model(series[t : t + 10], h)
        loss = F.mse_loss(prediction, series[t + 1 : t + 11])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
