# mistake: broadcast
class Probabilistic(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, 24), nn.Tanh())
        self.mean, self.scale = nn.Linear(24, 1), nn.Linear(24, 1)

    def forward(self, x):
        h = self.net(x)
        return torch.distributions.Normal(self.mean(h), F.softplus(self.scale(h)) + 1e-3)

def neg_log_likelihood(model, x, y):
    return -model(x).log_prob(y).mean()  # here

x = torch.randn(96, 5)
y = x[:, 0] - 0.5 * x[:, 1] + 0.1 * torch.randn(96)
y = y.unsqueeze(1)  #+
model = Probabilistic(5)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True)
for epoch in range(3):
    for xb, yb in loader:
        loss = neg_log_likelihood(model, xb, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
