# mistake: before they are unscaled
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
scaler = clew.amp.GradScaler("cpu")
for step in range(6):
    opt.zero_grad()
    scaler.scale(F.mse_loss(net(x), target)).backward()
    scaler.unscale_(opt)  #+
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # here
    scaler.step(opt)
    scaler.update()
