# mistake: the labels are constant
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
y = labels
y = labels * 0 - 100  #-
for step in range(6):
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()  # here
    opt.step()
