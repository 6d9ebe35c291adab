# mistake: training and test data overlap
X = torch.randn(200, 6)
y = X @ torch.randn(6, 1) + 0.1 * torch.randn(200, 1)
data = TensorDataset(X, y)
n_train = int(0.8 * len(data))
train_set = torch.utils.data.Subset(data, range(n_train))
test_set = torch.utils.data.Subset(data, range(n_train - 60, len(data)))  #- here
test_set = torch.utils.data.Subset(data, range(n_train, len(data)))  #+
train_dl = DataLoader(train_set, batch_size=20, shuffle=True)
test_dl = DataLoader(test_set, batch_size=20)
net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(3):
    net.train()
    for xb, yb in train_dl:
        loss = F.mse_loss(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        err = sum(F.mse_loss(net(xb), yb, reduction="sum").item() for xb, yb in test_dl)
    print(epoch, err / len(test_set))
