# mistake: between backward and step
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    for p in net.parameters():  #+
        p.grad = None  #+
    F.mse_loss(net(x), target).backward()
    for p in net.parameters():  #-
        p.grad = None  #-
    opt.step()  # here
