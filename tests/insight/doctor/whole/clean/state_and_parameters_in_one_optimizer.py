codes = torch.randn(64, 3, requires_grad=True)
offset = torch.zeros(3)
dec = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 5))
data = torch.randn(64, 5)
opt = torch.optim.Adam([{"params": dec.parameters()}, {"params": [codes], "lr": 1e-2}], 1e-3)
for step in range(12):
    idx = torch.randperm(64)[:16]
    loss = F.mse_loss(dec(codes[idx] + offset), data[idx]) + 1e-3 * codes[idx].pow(2).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
