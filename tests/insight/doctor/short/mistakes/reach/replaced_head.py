# mistake: were replaced
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
net[2] = nn.Linear(8, 1)  #+
opt = clew.optim.SGD(net.parameters(), lr=0.02)  # here
net[2] = nn.Linear(8, 1)  #-
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
