# mistake: between backward and step
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()  #+
    loss = F.mse_loss(net(x), target)
    loss.backward()
    opt.zero_grad()  #- here
    opt.step()
