# mistake: log_softmax missing
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    z = net(x)  #-
    z = F.log_softmax(net(x), dim=1)  #+
    opt.zero_grad()
    loss = F.nll_loss(z, labels)  # here
    loss.backward()
    opt.step()
