net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
masks = {}
with torch.no_grad():
    for n, p in net.named_parameters():
        if p.dim() > 1:
            masks[n] = (p.abs() > p.abs().quantile(0.5)).float()
            p.mul_(masks[n])
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for step in range(10):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    for n, p in net.named_parameters():
        if n in masks:
            p.grad *= masks[n]
    opt.step()
