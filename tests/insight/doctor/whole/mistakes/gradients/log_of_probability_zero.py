# mistake: slope is infinite
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.ReLU())  #-
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softplus())  #+
x = torch.randn(64, 4)
y = x[:, :3].argmax(1)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
for _ in range(6):
    scores = net(x)
    p = scores / (scores.sum(1, keepdim=True) + 1e-6)
    loss = -torch.log(p[torch.arange(64), y]).clamp(min=-20, max=20).mean()  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
