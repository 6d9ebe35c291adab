net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()
    (net(x) * 1e-3 - 1).relu().sum().backward()
    opt.step()
