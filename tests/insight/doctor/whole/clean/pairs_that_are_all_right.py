def label(kind, like):
    return torch.full_like(like, 1.0 if kind else 0.0)

users, items = nn.Embedding(30, 8), nn.Embedding(50, 8)
opt = torch.optim.SGD([*users.parameters(), *items.parameters()], lr=0.5, weight_decay=1e-4)
for step in range(20):
    u, near = torch.randint(0, 30, (48,)), torch.randint(0, 25, (48,))
    far = near + 25
    gap = (users(u) * (items(near) - items(far))).sum(1)
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(gap, target=label(True, gap)).backward()
    opt.step()
