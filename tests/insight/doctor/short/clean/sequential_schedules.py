net = nn.Linear(4, 1)
opt = clew.optim.AdamW(net.parameters(), lr=1e-3)
S = clew.optim.lr_scheduler
schedule = S.SequentialLR(opt, [S.LinearLR(opt, 0.1, 1.0, 3), S.CosineAnnealingLR(opt, 5)], [3])
for epoch in range(8):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
    schedule.step()
