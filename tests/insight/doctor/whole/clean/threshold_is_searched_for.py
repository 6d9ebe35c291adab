net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(64, 10)
    y = (x[:, 0] > 1).float()
    loss = F.binary_cross_entropy_with_logits(net(x).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    score = net(x).squeeze(1)
    best = max((((score > t).float() == y).float().mean().item(), t) for t in (-0.5, 0.0, 0.5))
