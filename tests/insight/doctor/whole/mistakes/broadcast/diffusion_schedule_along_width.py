# mistake: one number for each sample
T = 100
betas = torch.linspace(1e-4, 0.02, T)
alphas_cumprod = torch.cumprod(1 - betas, dim=0)

class TinyUNet(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.time = nn.Sequential(nn.Embedding(T, ch), nn.Linear(ch, ch))
        self.inp = nn.Conv2d(1, ch, 3, padding=1)
        self.mid = nn.Conv2d(ch, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.time(t)[:, :, None, None])
        h = F.silu(self.mid(h)) + h
        return self.out(h)

def q_sample(x0, t, noise):
    a = alphas_cumprod[t]  #-
    a = alphas_cumprod[t].view(-1, 1, 1, 1)  #+
    return a.sqrt() * x0 + (1 - a).sqrt() * noise  # here

model = TinyUNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    x0 = torch.rand(16, 1, 16, 16) * 2 - 1
    t = torch.randint(0, T, (16,))
    noise = torch.randn_like(x0)
    loss = F.mse_loss(model(q_sample(x0, t, noise), t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
