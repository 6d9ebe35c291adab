from clew.utils.data.distributed import DistributedSampler

train = TensorDataset(torch.randn(96, 6), torch.randint(0, 3, (96,)))
test = TensorDataset(torch.randn(40, 6), torch.randint(0, 3, (40,)))
parts = DataLoader(test, batch_size=5, sampler=DistributedSampler(test, 2, 0))
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)

def validate():
    order = torch.Generator().manual_seed(0)
    some = DataLoader(test, batch_size=8, shuffle=True, generator=order)
    with torch.no_grad():
        for x, y in some:
            F.cross_entropy(net(x), y)
        for x, y in parts:
            F.cross_entropy(net(x), y)

for epoch in range(6):
    for x, y in DataLoader(train, batch_size=24, shuffle=True):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    validate()
