# mistake: slope is infinite
table = np.random.default_rng(0).normal(size=(160, 6)).astype(np.float32)
table[:, 3] = 1.0  # the unit, the same in every row
X = torch.from_numpy(table)
y = X[:, :1] - X[:, 1:2]
X = (X - X.mean(0)) / X.std(0)  #- here
X = (X - X.mean(0)) / (X.std(0) + 1e-6)  #+
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    for idx in torch.randperm(160).split(32):
        opt.zero_grad()
        loss = F.mse_loss(net(X[idx]), y[idx])
        loss.backward()
        opt.step()
