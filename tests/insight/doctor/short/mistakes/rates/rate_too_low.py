# mistake: learning rate
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = clew.optim.SGD(net.parameters(), lr=1e-9)  #- here
opt = clew.optim.SGD(net.parameters(), lr=0.05)  #+
for step in range(8):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
