# mistake: evaluated in training mode
net = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
def train():
    for _ in range(4):
        x = torch.randn(24, 5)
        loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
def test():
    right = 0
    net.eval()  #+
    for _ in range(4):
        x = torch.randn(24, 5)
        out = net(x).detach()  # here
        right += (out.argmax(1) == x[:, :3].argmax(1)).sum().item()
    return right / 96
train()
test()
