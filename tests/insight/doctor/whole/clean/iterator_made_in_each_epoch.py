x = torch.randn(96, 6)
y = (x[:, 0] > 0).long()
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
warm = zip(x.split(16), y.split(16))
for a, b in warm:
    opt.zero_grad()
    F.cross_entropy(net(a), b).backward()
    opt.step()
for epoch in range(3):
    batches = zip(x.split(16), y.split(16))
    for i, (a, b) in enumerate(batches):
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
stream = ((x[i : i + 16], y[i : i + 16]) for i in range(0, 96, 16))
for a, b in stream:
    for _ in range(2):
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
