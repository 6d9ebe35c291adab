cell, out = nn.GRUCell(3, 8), nn.Linear(8, 1)
opt = torch.optim.Adam([*cell.parameters(), *out.parameters()], 1e-3)
h = torch.zeros(16, 8)
states = deque(maxlen=5)
for t in range(40):
    x = torch.randn(16, 3)
    h = cell(x, h)
    states.append(h)
    if t % 5 == 4:
        loss = F.mse_loss(out(torch.stack(list(states)).mean(0)), x[:, :1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        h = h.detach()
