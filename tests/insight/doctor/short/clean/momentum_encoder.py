def make():
    return nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
query, key = make(), make()
key.load_state_dict(query.state_dict())
key.requires_grad_(False)
opt = clew.optim.SGD(query.parameters(), lr=0.03)
queue = F.normalize(clew.randn(32, 8), dim=1)
for step in range(8):
    z = F.normalize(query(x + 0.1 * clew.randn(64, 4)), dim=1)
    with clew.no_grad():
        for a, b in zip(key.parameters(), query.parameters()):
            a.mul_(0.99).add_(b, alpha=0.01)
        k = F.normalize(key(x + 0.1 * clew.randn(64, 4)), dim=1)
    logits = clew.cat([(z * k).sum(1, keepdim=True), z @ queue.T], 1) / 0.2
    loss = F.cross_entropy(logits, clew.arange(64) * 0)
    loss = loss + F.cross_entropy(z @ k.T / 0.2, clew.arange(64))
    opt.zero_grad()
    loss.backward()
    opt.step()
