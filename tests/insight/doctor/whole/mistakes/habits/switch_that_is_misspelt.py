# mistake: is misspelt
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
for p in net[0].parameters():
    p.require_grad = False  #- here
    p.requires_grad = False  #+
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 1e-3)
for i in range(8):
    x = torch.randn(16, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
