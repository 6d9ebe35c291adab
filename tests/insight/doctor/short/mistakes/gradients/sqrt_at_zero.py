# mistake: slope is infinite
net = nn.Linear(4, 8)
opt = clew.optim.SGD(net.parameters(), lr=0.001)
for step in range(4):
    opt.zero_grad()
    h = net(x).relu()
    h = h + 1e-6  #+
    h.sqrt().mean().backward()  # here
    opt.step()
