# mistake: evaluated in training mode
net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for step in range(6):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    net.eval()  #+
    with clew.no_grad():
        accuracy = (net(x).argmax(1) == labels).float().mean()  # here
