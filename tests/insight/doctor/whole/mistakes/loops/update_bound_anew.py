# mistake: an update never reaches
w = torch.randn(5, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
x = torch.randn(100, 5)
y = x @ torch.randn(5, 1) + 0.3
lr = 0.05
params = [w, b]
for i in range(15):
    loss = ((x @ params[0] + params[1] - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in params:
            p = p - lr * p.grad  #- here
            p -= lr * p.grad  #+
    for p in params:
        p.grad.zero_()
