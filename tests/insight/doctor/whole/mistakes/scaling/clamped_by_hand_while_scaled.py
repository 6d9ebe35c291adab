# mistake: before they are unscaled
net = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu")
parts = 2
for step in range(10):
    opt.zero_grad()
    for part in range(parts):
        x = torch.randn(24, 12)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            error = F.mse_loss(net(x), 40 * x[:, :1])
        scaler.scale(error / parts).backward()  #-
        scaler.scale(error).backward()  #+
    for p in net.parameters():
        p.grad.clamp_(-1.0, 1.0)  #- here
        p.grad.div_(parts)  #+
    scaler.step(opt)
    scaler.update()
