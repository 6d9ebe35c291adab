# mistake: training goes on in evaluation mode
net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    net.train()  #+
    for step in range(5):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    net.eval()  # here
    with clew.no_grad():
        net(x).argmax(1)
