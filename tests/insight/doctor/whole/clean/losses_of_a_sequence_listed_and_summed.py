cell, out = nn.GRUCell(3, 12), nn.Linear(12, 1)
opt = torch.optim.Adam([*cell.parameters(), *out.parameters()], lr=1e-3)
for i in range(8):
    h, losses, outputs = torch.zeros(8, 12), [], []
    for t in range(6):
        x = torch.randn(8, 3)
        h = cell(x, h)
        outputs.append(out(h))
        losses.append(F.mse_loss(outputs[-1], x[:, :1]))
    loss = torch.stack(losses).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
