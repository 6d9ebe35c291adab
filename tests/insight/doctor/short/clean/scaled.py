net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.05)
schedule = clew.optim.lr_scheduler.CosineAnnealingLR(opt, 8)
scaler = clew.amp.GradScaler("cpu")
for step in range(8):
    opt.zero_grad()
    with clew.autocast("cpu", dtype=clew.bfloat16):
        loss = F.cross_entropy(net(x), labels)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    schedule.step()
