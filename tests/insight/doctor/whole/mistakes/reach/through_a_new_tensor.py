# mistake: cut off
class Weighting(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.scores = nn.Linear(parts, parts)

    def forward(self, values):
        weights = F.softmax(self.scores(values), dim=1)
        weights = torch.tensor(weights.tolist())  #- here
        return (weights * values).sum(1, keepdim=True)

values = torch.randn(64, 5)
goal = values.max(1, keepdim=True).values
combine, scale = Weighting(5), nn.Linear(1, 1)
optimizer = torch.optim.SGD(
    [{"params": combine.parameters()}, {"params": scale.parameters(), "lr": 0.01}], lr=0.1
)
for step in range(10):
    rows = torch.randint(0, 64, (16,))
    prediction = scale(combine(values[rows]))
    loss = F.mse_loss(prediction, goal[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
