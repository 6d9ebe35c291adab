# mistake: the schedule counts in another unit
x = torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
EPOCHS = 4
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)
for epoch in range(EPOCHS):
    for a, b in loader:
        opt.zero_grad()
        F.mse_loss(net(a), b).backward()
        opt.step()
        schedule.step()  #- here
    schedule.step()  #+
