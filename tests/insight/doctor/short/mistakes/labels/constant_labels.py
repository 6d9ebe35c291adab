# mistake: labels are constant
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = clew.zeros(64, dtype=clew.long)  #-
y = labels  #+
for step in range(6):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)  # here
    loss.backward()
    opt.step()
