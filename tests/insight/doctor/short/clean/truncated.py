net, head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 1)
opt = clew.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
series = clew.randn(2, 80, 4)
state = None
losses = []
for t in range(0, 80, 10):
    out, state = net(series[:, t : t + 10], state)
    loss = head(out).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    state = tuple(s.detach() for s in state)
    losses.append(loss.detach())
