features = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1))
net = nn.Sequential(features.requires_grad_(False), nn.Linear(8, 3))
net.eval()
opt = clew.optim.Adam(net[1].parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
