net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).requires_grad_(False)
image = clew.randn(1, 4, requires_grad=True)
opt = clew.optim.Adam([image], lr=0.05)
for step in range(8):
    opt.zero_grad()
    F.cross_entropy(net(image), clew.tensor([1])).backward()
    opt.step()
