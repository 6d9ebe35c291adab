# mistake: sorted data
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
order = labels.argsort()
order = clew.randperm(64)  #+
for i in range(0, 64, 8):
    opt.zero_grad()
    loss = F.cross_entropy(net(x[order[i : i + 8]]), labels[order[i : i + 8]])  # here
    loss.backward()
    opt.step()
