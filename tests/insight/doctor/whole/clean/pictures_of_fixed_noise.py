gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(gen.parameters(), lr=2e-3)
def show():
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        return gen(torch.randn(4, 4, generator=g)).mean().item()
for i in range(12):
    z = torch.randn(32, 4)
    out = gen(z)
    loss = (out.mean(0) - 1).square().sum() + (out.std(0) - 1).square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    show()
