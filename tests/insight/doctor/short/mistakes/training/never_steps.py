# mistake: never steps
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.02)  # here
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()  #+
