x = torch.linspace(-math.pi, math.pi, 400)
y = torch.sin(x)
a, b, c, d = (torch.randn((), requires_grad=True) for _ in range(4))
rate = 1e-6
for t in range(40):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum()
    if t % 10 == 9:
        shown = (t, loss.item())
    loss.backward()
    with torch.no_grad():
        a -= rate * a.grad
        b -= rate * b.grad
        c -= rate * c.grad
        d -= rate * d.grad
        a.grad = b.grad = c.grad = d.grad = None
