# mistake: where() hides
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    h = net(x)
    safe = clew.where(h > 0, h, 1.0)  #+
    y = clew.where(h > 0, h.log(), 0.0)  #- here
    y = clew.where(h > 0, safe.log(), 0.0)  #+
    opt.zero_grad()
    y.square().mean().backward()
    opt.step()
