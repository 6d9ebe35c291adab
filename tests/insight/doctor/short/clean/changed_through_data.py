net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(6):
    net.zero_grad()
    F.mse_loss(net(x), target).backward()
    for p in net.parameters():
        p.data.add_(p.grad, alpha=-0.05)
