s, t = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.SGD(s.parameters(), lr=0.1)
for step in range(10):
    x = torch.randn(16, 4)
    loss = F.mse_loss(s(x), t(x).detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
    new = {}
    for (n, a), b in zip(t.named_parameters(), s.parameters()):
        a = 0.9 * a.detach() + 0.1 * b.detach()
        new[n] = a
    t.load_state_dict(new)
