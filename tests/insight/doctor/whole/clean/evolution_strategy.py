net = nn.Linear(5, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.05)
flat = torch.nn.utils.parameters_to_vector
unflat = torch.nn.utils.vector_to_parameters
target = torch.randn(5, 1)

@torch.no_grad()
def fitness(vec):
    unflat(vec, net.parameters())
    x = torch.randn(64, 5)
    return -F.mse_loss(net(x), x @ target)

theta = flat(net.parameters()).detach().clone()
for gen in range(15):
    eps = torch.randn(16, theta.numel())
    scores = torch.stack([fitness(theta + 0.1 * e) for e in eps])
    scores = (scores - scores.mean()) / (scores.std() + 1e-8)
    g = -(scores[:, None] * eps).mean(0) / 0.1
    unflat(theta, net.parameters())
    at = 0
    for p in net.parameters():
        p.grad = g[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
    theta = flat(net.parameters()).detach().clone()
