net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = clew.optim.Adam(net.parameters(), lr=1e-3)
def kernel(a, b):
    return clew.exp(-((a[:, None] - b) ** 2))
for step in range(6):
    made, wanted = net(x).squeeze(1), target[:, 0]
    loss = kernel(made, made).mean() - 2 * kernel(made, wanted).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
