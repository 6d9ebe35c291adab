net = nn.GRUCell(3, 12)
out = nn.Linear(12, 3)
opt = torch.optim.Adam([*net.parameters(), *out.parameters()], lr=2e-3)
for i in range(12):
    x = torch.randn(7, 16, 3)
    h, loss = torch.zeros(16, 12), 0.0
    for t in range(6):
        h = net(x[t], h)
        loss = loss + F.mse_loss(out(h), x[t])
    opt.zero_grad()
    (loss / 6).backward()
    opt.step()
