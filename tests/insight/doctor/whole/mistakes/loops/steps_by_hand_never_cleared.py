# mistake: never cleared
def init(sizes):
    return [
        t
        for a, b in zip(sizes, sizes[1:])
        for t in (
            (torch.randn(a, b) / a**0.5).requires_grad_(),
            torch.zeros(b, requires_grad=True),
        )
    ]

def forward(params, x):
    pairs = list(zip(params[::2], params[1::2]))
    for w, b in pairs[:-1]:
        x = torch.tanh(x @ w + b)
    w, b = pairs[-1]
    return x @ w + b

def sgd(params, lr):
    with torch.no_grad():
        for p in params:
            p -= lr * p.grad
            p.grad.zero_()  #+

params = init([4, 16, 1])
x = torch.randn(64, 4)
y = (x[:, :1] * x[:, 1:2]).clone()
for step in range(20):
    picked = torch.randperm(64)[:16]
    loss = ((forward(params, x[picked]) - y[picked]) ** 2).mean()
    loss.backward()  # here
    sgd(params, 0.02)
    if step % 5 == 0:
        print(step, loss.item())
