params = [torch.randn(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)]
x = torch.randn(64, 4)
y = x[:, :1]
for i in range(10):
    loss = F.mse_loss(x @ params[0] + params[1], y)
    loss.backward()
    new = []
    for p in params:
        p = p - 0.1 * p.grad
        new.append(p.detach().requires_grad_())
    params = new
