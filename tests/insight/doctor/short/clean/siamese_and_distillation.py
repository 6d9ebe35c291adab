net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
teacher = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(8):
    a, b = net(x), net(x + 0.05 * clew.randn(64, 4))
    with clew.no_grad():
        soft = teacher(x).softmax(1)
    kl = F.kl_div(F.log_softmax(a, 1), soft, reduction="batchmean")
    loss = F.mse_loss(a, b) + kl + F.cross_entropy(a, soft) + F.cross_entropy(a, labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
