# mistake: before they are unscaled
def norm_of(parameters):
    return torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm()

def shrink(parameters, most):
    total = norm_of(parameters)
    if total > most:
        for p in parameters:
            if p.grad is not None:
                p.grad *= most / total  # here

net = nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
for step in range(12):
    x = torch.randn(24, 12)
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    scaler.scale(loss).backward()
    scaler.unscale_(opt)  #+
    shrink(list(net.parameters()), 0.5)
    scaler.step(opt)
    scaler.update()
