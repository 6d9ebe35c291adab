net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(12):
    x = torch.randn(64, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
net.eval()
xv = torch.randn(128, 6)
yv = xv[:, :3].argmax(1)
with torch.no_grad():
    logits = net(xv)
T = nn.Parameter(torch.ones(1))
cal = torch.optim.LBFGS([T], lr=0.05, max_iter=10)

def closure():
    cal.zero_grad()
    loss = F.cross_entropy(logits / T, yv)
    loss.backward()
    return loss

for _ in range(3):
    cal.step(closure)
