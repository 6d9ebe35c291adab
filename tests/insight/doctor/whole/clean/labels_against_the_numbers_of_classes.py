net = nn.Linear(6, 8)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
classes = torch.arange(8)
for step in range(8):
    x = torch.randn(8, 6)
    y = x.argmax(1)
    column = y.reshape(-1, 1)
    hot = (column == classes).float()
    loss = F.mse_loss(net(x).softmax(1), hot)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        found = (column == classes).any(0).sum()
