net = nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 1))
meta = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    meta.zero_grad()
    for task in range(3):
        learner = copy.deepcopy(net)
        a, b = random.uniform(0.5, 2), random.uniform(-1, 1)
        x = torch.rand(16, 1) * 4 - 2
        loss = F.mse_loss(learner(x), a * x + b)
        grads = torch.autograd.grad(loss, list(learner.parameters()))
        with torch.no_grad():
            for p, g in zip(learner.parameters(), grads):
                p -= 0.05 * g
        F.mse_loss(learner(x), a * x + b).backward()
        for p, q in zip(net.parameters(), learner.parameters()):
            p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad
    for p in net.parameters():
        p.grad /= 3
    meta.step()
