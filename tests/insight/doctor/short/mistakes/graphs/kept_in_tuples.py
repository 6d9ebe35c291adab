# mistake: kept with their graphs
net, log = nn.Linear(4, 3), {"losses": []}
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    loss = F.cross_entropy(net(x), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    log["losses"].append((step, loss))  #- here
    log["losses"].append((step, loss.item()))  #+
