steps = 50
beta = torch.linspace(1e-4, 0.02, steps)
alpha_bar = torch.cumprod(1 - beta, 0)

class Noise(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(steps, 16)
        self.fc1, self.fc2, self.fc3 = nn.Linear(2, 16), nn.Linear(16, 32), nn.Linear(32, 2)

    def forward(self, x, t):
        h = F.silu(self.fc1(x) + self.time(t))
        return self.fc3(F.silu(self.fc2(h)))

model = Noise()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.randn(256, 2)
for step in range(8):
    x0 = data[torch.randint(0, 256, (64,))]
    t = torch.randint(0, steps, (64,))
    noise = torch.randn_like(x0)
    a = alpha_bar[t].unsqueeze(1)
    loss = F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for e, p in zip(average.parameters(), model.parameters()):
            e.lerp_(p, 0.01)
average.eval()
with torch.no_grad():
    x = torch.randn(16, 2)
    for i in reversed(range(steps)):
        t = torch.full((16,), i)
        eps = average(x, t)
        x = (x - beta[i] / (1 - alpha_bar[i]).sqrt() * eps) / (1 - beta[i]).sqrt()
        x = x + (beta[i].sqrt() * torch.randn_like(x) if i else 0)
