# mistake: requires grad
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
y = target.clone().requires_grad_()  #-
y = target.clone()  #+
for step in range(6):
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)  # here
    loss.backward()
    opt.step()
