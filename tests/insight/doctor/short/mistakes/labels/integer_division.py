# mistake: integer division
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    opt.zero_grad()
    z = net(x)
    F.cross_entropy(z, labels).backward()
    opt.step()
    accuracy = (z.argmax(1) == labels).sum() // len(labels)  #- here
    accuracy = (z.argmax(1) == labels).sum() / len(labels)  #+
