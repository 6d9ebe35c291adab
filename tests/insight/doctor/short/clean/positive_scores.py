net = nn.Sequential(nn.Linear(4, 16), nn.ReLU())
opt = clew.optim.Adam(net.parameters(), lr=1e-3)
for step in range(6):
    scores = (net(x) * net(x.flip(0))).sum(1) / 100
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(scores, (labels > 0).float()).backward()
    opt.step()
