net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 12))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
data = torch.randn(256, 10)

def off_diagonal(c):
    return c[~torch.eye(len(c), dtype=torch.bool)]

for step in range(20):
    x = data[torch.randint(0, 256, (64,))]
    a = net(x + 0.1 * torch.randn_like(x))
    b = net(x * (torch.rand_like(x) > 0.1))
    agree = F.mse_loss(a, b)
    spread = sum(F.relu(1 - (z.var(0) + 1e-4).sqrt()).mean() for z in (a, b))
    na, nb = (a - a.mean(0)) / (a.std(0) + 1e-4), (b - b.mean(0)) / (b.std(0) + 1e-4)
    c = na.T @ nb / len(x)
    redundant = ((torch.diagonal(c) - 1) ** 2).sum() + 0.1 * off_diagonal(c).pow(2).sum()
    loss = 5 * agree + 5 * spread + 0.1 * redundant
    opt.zero_grad()
    loss.backward()
    opt.step()
