# mistake: not normalised
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=1e-6)  #-
opt = clew.optim.SGD(net.parameters(), lr=0.01)  #+
inputs = clew.randint(0, 256, (64, 4)).float()
inputs = (inputs / 255 - 0.5) / 0.3  #+
for step in range(4):
    opt.zero_grad()
    p = net(inputs)  # here
    F.mse_loss(p, target).backward()
    opt.step()
