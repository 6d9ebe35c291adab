net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 2, 1))
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
images = clew.randn(16, 1, 8, 8)
masks = (images[:, 0] > 0).long()
loader = DataLoader(TensorDataset(images, masks), batch_size=4, shuffle=True)
for epoch in range(2):
    net.train()
    total = 0.0
    for inputs, y in loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(inputs), y)
        loss.backward()
        opt.step()
        total += loss.item() * len(inputs)
    net.eval()
    with clew.no_grad():
        for inputs, y in loader:
            (net(inputs).argmax(1) == y).float().mean().item()
