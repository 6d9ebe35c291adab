class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8 * 4 * 4)
        self.conv = nn.ConvTranspose2d(8, 1, 4, 2, 1)
        self.bn = nn.BatchNorm2d(8)

    def forward(self, z):
        x = self.fc(z).view(-1, 8, 4, 4)
        return torch.tanh(self.conv(F.relu(self.bn(x))))

class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 4, 2, 1)
        self.fc = nn.Linear(8 * 16, 1)

    def forward(self, x):
        return self.fc(F.leaky_relu(self.conv(x), 0.2).flatten(1)).view(-1)

g, d = G(), D()
average = copy.deepcopy(g).eval().requires_grad_(False)
opt_g = torch.optim.Adam(g.parameters(), 1e-3, betas=(0.0, 0.99))
opt_d = torch.optim.Adam(d.parameters(), 1e-3, betas=(0.0, 0.99))
data = torch.tanh(torch.randn(96, 1, 8, 8))
for step in range(12):
    real = data[torch.randint(0, 96, (16,))].requires_grad_()
    scores = d(real)
    (grad,) = torch.autograd.grad(scores.sum(), real, create_graph=True)
    penalty = grad.pow(2).sum((1, 2, 3)).mean()
    with torch.no_grad():
        fake = g(torch.randn(16, 4))
    loss_d = F.softplus(-scores).mean() + F.softplus(d(fake)).mean() + 5 * penalty
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    d.requires_grad_(False)
    loss_g = F.softplus(-d(g(torch.randn(16, 4)))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    d.requires_grad_(True)
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), g.parameters()):
            slow.lerp_(fast, 0.05)
        for slow, fast in zip(average.buffers(), g.buffers()):
            slow.copy_(fast)
