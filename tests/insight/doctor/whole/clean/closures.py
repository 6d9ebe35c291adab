x = torch.linspace(-2, 2, 60).unsqueeze(1)
y = torch.sin(2 * x)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=5)

def closure():
    opt.zero_grad()
    total = 0.0
    for a, b in zip(x.split(20), y.split(20)):
        loss = F.mse_loss(net(a), b) / 3
        loss.backward()
        total += loss.item()
    return torch.tensor(total)

for _ in range(6):
    opt.step(closure)

net2 = nn.Linear(1, 1)
sgd = torch.optim.SGD(net2.parameters(), 0.01)

def fit():
    for p in net2.parameters():
        p.grad = None
    loss = F.mse_loss(net2(x), y)
    loss.backward()
    return loss

for _ in range(8):
    sgd.step(fit)
