# mistake: shuffled apart
x = torch.randn(160, 5)
y = (x[:, 0] > 0).long()
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    perm = torch.randperm(160)  #+
    xs = x[torch.randperm(160)]  #-
    ys = y[torch.randperm(160)]  #- here
    xs, ys = x[perm], y[perm]  #+
    for i in range(0, 160, 32):
        opt.zero_grad()
        F.cross_entropy(net(xs[i : i + 32]), ys[i : i + 32]).backward()
        opt.step()
