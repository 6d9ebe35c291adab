x, y = torch.randn(160, 7), torch.randint(0, 3, (160,))
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
a, b = next(iter(loader))
for step in range(10):
    loss = F.cross_entropy(net(a), b)
    opt.zero_grad()
    loss.backward()
    opt.step()
buffer = torch.empty(20, 7)
mean, count = torch.zeros(7), 0
for epoch in range(2):
    for a, b in loader:
        count += len(a)
        mean += (a - mean).sum(0) / count
        buffer.copy_(a)
        buffer -= mean
        loss = F.cross_entropy(net(buffer), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
