net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.SGD(net.parameters(), 0.05)

def climb(rho=0.05):
    norm = torch.norm(torch.stack([p.grad.norm() for p in net.parameters()]))
    moved = []
    with torch.no_grad():
        for p in net.parameters():
            e = p.grad * (rho / (norm + 1e-12))
            p.add_(e)
            moved.append((p, e))
    return moved

for _ in range(8):
    x = torch.randn(32, 6)
    y = (x[:, 0] > 0).long()
    F.cross_entropy(net(x), y).backward()
    moved = climb()
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    with torch.no_grad():
        for p, e in moved:
            p.sub_(e)
    opt.step()
    opt.zero_grad()
