# mistake: given its own state
x = torch.randn(120, 6)
y = x[:, :1] - x[:, 1:2] + 0.2 * torch.randn(120, 1)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
best, kept = math.inf, {}
for epoch in range(6):
    for rows in torch.randperm(80).split(16):
        opt.zero_grad()
        F.mse_loss(net(x[rows]), y[rows]).backward()
        opt.step()
    with torch.no_grad():
        score = F.mse_loss(net(x[80:]), y[80:]).item()
    if epoch < 3:
        best = score
        kept = dict((name, t.data) for name, t in net.state_dict().items())  #- here
        kept = dict((name, t.data.clone()) for name, t in net.state_dict().items())  #+
net.load_state_dict(kept)
