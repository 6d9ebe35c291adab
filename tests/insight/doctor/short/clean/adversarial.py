net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(8):
    probe = x.clone().requires_grad_()
    (g,) = clew.autograd.grad(F.cross_entropy(net(probe), labels), probe)
    opt.zero_grad()
    F.cross_entropy(net(x + 0.01 * g.sign()), labels).backward()
    opt.step()
