# mistake: broadcast
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.05)
y = target[:, 0]
y = target  #+
for step in range(6):
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()  # here
    loss.backward()
    opt.step()
