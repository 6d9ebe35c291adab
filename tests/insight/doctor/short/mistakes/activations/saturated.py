# mistake: saturated
net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.01)
net[0].weight.data.mul_(200.0)  #-
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
