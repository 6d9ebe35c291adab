# mistake: labels outside
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = labels
y = labels + 1  #-
try:
    for step in range(4):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()  # here
        opt.step()
except IndexError:
    pass
