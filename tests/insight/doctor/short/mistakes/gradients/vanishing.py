# mistake: vanish
layers = [part for _ in range(10) for part in (nn.Linear(8, 8), nn.Sigmoid())]  #-
layers = [part for _ in range(3) for part in (nn.Linear(8, 8), nn.ReLU())]  #+
net = nn.Sequential(nn.Linear(4, 8), *layers, nn.Linear(8, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
