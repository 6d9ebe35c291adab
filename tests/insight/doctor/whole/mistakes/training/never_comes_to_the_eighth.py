# mistake: never steps
x = torch.randn(96, 7)
y = x[:, :1].sin()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(7, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
accumulate = 8  #-
accumulate = 2  #+
for epoch in range(4):
    optimizer.zero_grad()
    for i, (a, b) in enumerate(loader):
        loss = F.mse_loss(net(a), b) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
