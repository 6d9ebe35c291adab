x = torch.randn(512, 6)
data = TensorDataset(x, (x[:, :1] - x[:, 1:2]).relu())
loader = DataLoader(data, batch_size=8, shuffle=True)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.08)
for epoch in range(3):
    opt.zero_grad()
    for i, (a, b) in enumerate(loader):
        loss = F.mse_loss(net(a), b) / 8
        loss.backward()
        if (i + 1) % 8 == 0:
            opt.step()
            opt.zero_grad()
