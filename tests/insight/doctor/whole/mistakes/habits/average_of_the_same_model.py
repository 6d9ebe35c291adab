# mistake: a moving average is the weights themselves
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
smooth = net  #-
smooth = copy.deepcopy(net)  #+
for i in range(8):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(net.parameters(), smooth.parameters()):
            q.lerp_(p, 0.01)  # here
