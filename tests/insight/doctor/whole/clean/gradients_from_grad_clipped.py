net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
params = list(net.parameters())
for i in range(6):
    x = torch.randn(16, 6)
    opt.zero_grad()
    for p, g in zip(params, torch.autograd.grad(F.mse_loss(net(x), x[:, :1]), params)):
        p.grad = g
    total = torch.nn.utils.clip_grad_norm_(params, float("inf"))
    torch.nn.utils.clip_grad_value_(params, 1.0)
    opt.step()
