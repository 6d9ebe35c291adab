# mistake: average
class Denoiser(nn.Module):
    def __init__(self, dim=2, hidden=32):
        super().__init__()
        self.time = nn.Embedding(50, hidden)
        self.a = nn.Linear(dim, hidden)
        self.b = nn.Linear(hidden, hidden)
        self.c = nn.Linear(hidden, dim)

    def forward(self, x, t):
        h = F.silu(self.a(x) + self.time(t))
        return self.c(F.silu(self.b(h)))

betas = torch.linspace(1e-4, 0.05, 50)
alpha_bar = torch.cumprod(1 - betas, 0)
data = torch.randn(512, 2) * 0.3 + torch.tensor([1.0, -1.0])
model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    x0 = data[torch.randint(0, 512, (64,))]
    t = torch.randint(0, 50, (64,))
    noise = torch.randn_like(x0)
    a = alpha_bar[t][:, None]
    xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
    loss = F.mse_loss(model(xt, t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow = 0.99 * slow + 0.01 * fast  #- here
            slow.mul_(0.99).add_(fast, alpha=0.01)  #+
with torch.no_grad():
    x = average(torch.randn(16, 2), torch.full((16,), 49))
