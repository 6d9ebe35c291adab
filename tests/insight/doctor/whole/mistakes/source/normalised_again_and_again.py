# mistake: in place
signals = torch.randn(96, 24) * 3 + 2
labels = (signals.mean(1) > 2).long()
mean, std = signals.mean(), signals.std()
net = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(5):
    for i in range(0, 96, 32):
        x = signals[i : i + 32]
        y = labels[i : i + 32]
        x -= mean  #- here
        x /= std  #-
        x = (x - mean) / std  #+
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
