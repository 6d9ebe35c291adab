# mistake: never cleared
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.001)
for step in range(8):
    opt.zero_grad()  #+
    loss = F.mse_loss(net(x), target)
    loss.backward()  # here
    opt.step()
