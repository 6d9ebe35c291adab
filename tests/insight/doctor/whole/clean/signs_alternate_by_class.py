x = torch.randn(160, 6)
y = torch.arange(160) % 2
x[:, 0] += 2.0 * y
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
sets = [(y == c).nonzero().flatten() for c in (0, 1)]
for step in range(20):
    rows = sets[step % 2][torch.randint(0, 80, (16,))]
    rows = torch.cat([rows, sets[1 - step % 2][torch.randint(0, 80, (8,))]])
    loss = F.cross_entropy(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
