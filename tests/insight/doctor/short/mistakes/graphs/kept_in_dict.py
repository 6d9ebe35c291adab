# mistake: kept with their graphs
net, losses = nn.Linear(4, 3), {}
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    loss = F.cross_entropy(net(x), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses[step] = loss  #- here
    losses[step] = loss.item()  #+
