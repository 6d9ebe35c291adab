w = clew.randn(4, 1, requires_grad=True)
for step in range(8):
    loss = ((x @ w - target) ** 2).mean()
    loss.backward()
    with clew.no_grad():
        w -= 0.05 * w.grad
        w.grad.zero_()
