# mistake: float64
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
y = clew.from_numpy(np.asarray(target.numpy(), dtype=np.float64))
y = y.float()  #+
for step in range(6):
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()  # here
    loss.backward()
    opt.step()
