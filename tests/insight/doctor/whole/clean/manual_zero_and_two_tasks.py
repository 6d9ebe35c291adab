body, a, b = nn.Linear(6, 16), nn.Linear(16, 1), nn.Linear(16, 1)
params = [*body.parameters(), *a.parameters(), *b.parameters()]
opt = torch.optim.AdamW(params, 1e-3)
for step in range(16):
    for p in params:
        if p.grad is not None:
            p.grad.zero_()
    x = torch.randn(32, 6)
    h = torch.tanh(body(x))
    head = a if step % 2 else b
    F.mse_loss(head(h), x[:, :1]).backward()
    opt.step()
