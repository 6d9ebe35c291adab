# mistake: kept with their graphs
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
history = []
for step in range(8):
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward()
    opt.step()
    history.append(loss)  #- here
    history.append(loss.item())  #+
