# mistake: same random numbers
class Diffusion:
    def __init__(self, steps):
        self.betas = torch.linspace(1e-3, 0.1, steps)
        self.bar = torch.cumprod(1 - self.betas, 0)
        self.generator = torch.Generator().manual_seed(7)  #+

    def corrupt(self, x):
        g = torch.Generator().manual_seed(7)  #- here
        g = self.generator  #+
        noise = torch.randn(x.shape, generator=g)
        t = torch.randint(0, len(self.bar), (len(x),))
        a = self.bar[t].unsqueeze(1)
        return a.sqrt() * x + (1 - a).sqrt() * noise, noise, t

class Denoiser(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.time = nn.Embedding(steps, 8)
        self.net = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], 1))

diffusion, model = Diffusion(20), Denoiser(20)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(12):
    angle = torch.rand(32) * 2 * math.pi
    x = torch.stack([angle.cos(), angle.sin()], 1)
    noisy, noise, t = diffusion.corrupt(x)
    loss = F.mse_loss(model(noisy, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
