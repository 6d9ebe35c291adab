net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(8):
    z = F.normalize(net(x), dim=1)
    squared = (z[:, None] - z[None]).square().sum(-1)
    same = labels[:, None] == labels[None]
    attract = (squared * same).sum() / same.sum()
    repel = ((1 - squared).clamp(min=0) * ~same).sum() / (~same).sum()
    opt.zero_grad()
    (attract + repel).backward()
    opt.step()
