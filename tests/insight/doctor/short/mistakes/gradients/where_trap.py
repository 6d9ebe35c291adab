# mistake: where() hides
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.001)
for step in range(4):
    opt.zero_grad()
    h = net(x)
    safe = h  #-
    safe = clew.where(h > 0, h, 1.0)  #+
    y = clew.where(h > 0, safe.log(), clew.zeros_like(h))  # here
    y.mean().backward()
    opt.step()
