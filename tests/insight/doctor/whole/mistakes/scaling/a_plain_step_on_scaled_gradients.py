# mistake: steps with gradients that are still scaled
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for i in range(6):
    x = torch.randn(32, 6)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)  #+
    scaler.update()  #+
    opt.step()  #- here
