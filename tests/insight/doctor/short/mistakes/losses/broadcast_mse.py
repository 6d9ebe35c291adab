# mistake: broadcast
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.05)
y = target[:, 0]
for step in range(6):
    opt.zero_grad()
    p = net(x)
    p = p.squeeze(-1)  #+
    loss = F.mse_loss(p, y)  # here
    loss.backward()
    opt.step()
