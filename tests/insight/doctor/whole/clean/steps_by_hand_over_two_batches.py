w = (torch.randn(6, 1) * 0.3).requires_grad_()
b = torch.zeros(1, requires_grad=True)
for i in range(15):
    for part in range(2):
        x = torch.randn(16, 6)
        loss = ((x @ w + b - x[:, :1] * 2) ** 2).mean() / 2
        loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.05 * p.grad
            p.grad.zero_()
