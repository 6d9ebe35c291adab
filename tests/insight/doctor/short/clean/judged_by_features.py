features = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8)).eval()
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for step in range(8):
    opt.zero_grad()
    out = net(x)
    (F.l1_loss(out, x) + F.mse_loss(features(out), features(x))).backward()
    opt.step()
