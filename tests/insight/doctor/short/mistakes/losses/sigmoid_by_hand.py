# mistake: sigmoid before binary_cross_entropy_with_logits
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = (x[:, :1] > 0).float()
for step in range(6):
    p = 1 / (1 + clew.exp(-net(x)))  #-
    p = net(x)  #+
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(p, y).backward()  # here
    opt.step()
