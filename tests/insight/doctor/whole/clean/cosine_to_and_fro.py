x = torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=6)
for epoch in range(4):
    for a, b in loader:
        opt.zero_grad()
        F.mse_loss(net(a), b).backward()
        opt.step()
        schedule.step()
