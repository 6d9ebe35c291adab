net = nn.Linear(4, 8)
opt = clew.optim.SGD(net.parameters(), lr=1e-3)
for step in range(8):
    far = net(x).square() + 5
    loss = (0.5 - far).relu().mean() + clew.relu(2 - far + 0.1).mean() + far.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
