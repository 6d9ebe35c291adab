# mistake: made anew for every step
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
def update(x, y, opt=None):
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)  #- here
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    update(x, (x[:, 0] > 0).long(), adam)
