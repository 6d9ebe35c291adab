cell, out = nn.GRUCell(3, 12), nn.Linear(12, 3)
opt = torch.optim.Adam([*cell.parameters(), *out.parameters()], lr=3e-3)
for i in range(8):
    x = torch.randn(32, 3)
    h, errors = torch.zeros(32, 12), []
    for k in range(5):
        h = cell(x, h)
        loss = F.smooth_l1_loss(out(h), x.flip(1))
        errors.append(loss.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
