net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
schedule = clew.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
for epoch in range(8):
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward()
    opt.step()
    schedule.step(loss.item())
