class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 16), nn.Linear(6, 16)

    def forward(self, a, b):
        scores = self.one(a) @ self.two(b).transpose(1, 2) / 4
        return F.softmax(F.softmax(scores, dim=2), dim=1)

a = torch.randn(40, 5, 6)
order = torch.stack([torch.randperm(5) for _ in range(40)])
b = a[torch.arange(40)[:, None], order]
model = Matcher()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(8):
    match = model(a, b)
    loss = -torch.log(match[torch.arange(40)[:, None], order, torch.arange(5)] + 1e-9).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
