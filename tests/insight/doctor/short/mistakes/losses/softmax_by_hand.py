# mistake: softmax before cross_entropy
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    z = net(x)
    z = z.exp() / z.exp().sum(1, keepdim=True)  #-
    opt.zero_grad()
    F.cross_entropy(z, labels).backward()  # here
    opt.step()
