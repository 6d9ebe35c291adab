# mistake: retain_graph
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward(retain_graph=True)  #- here
    loss.backward()  #+
    opt.step()
