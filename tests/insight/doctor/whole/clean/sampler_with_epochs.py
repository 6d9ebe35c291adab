from clew.utils.data.distributed import DistributedSampler

data = TensorDataset(torch.randn(96, 6), torch.randint(0, 3, (96,)))
test = TensorDataset(torch.randn(40, 6), torch.randint(0, 3, (40,)))
sampler = DistributedSampler(data, num_replicas=2, rank=1, shuffle=True, seed=3)
loader = DataLoader(data, batch_size=12, sampler=sampler, drop_last=True)
valid = DataLoader(test, batch_size=20, sampler=DistributedSampler(test, 2, 0, shuffle=False))
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
best, waited = 1e9, 0
for epoch in range(5):
    sampler.set_epoch(epoch)
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    with torch.no_grad():
        score = sum(F.cross_entropy(net(x), y).item() for x, y in valid)
    waited = 0 if score < best else waited + 1
    best = min(best, score)
    if waited >= 3:
        break
