body = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU())
net = nn.Sequential(body, nn.Linear(16, 3))
for p in body.parameters():
    p.requires_grad_(False)
body.eval()
opt = clew.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-2)
for epoch in range(3):
    net.train()
    body.eval()
    for step in range(4):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    net.eval()
    with clew.no_grad():
        (net(x).argmax(1) == labels).float().mean().item()
