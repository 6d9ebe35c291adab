S, A = 12, 3
Q = nn.Embedding(S, A)
nn.init.zeros_(Q.weight)
opt = torch.optim.SGD(Q.parameters(), lr=0.5)
s = 0
for t in range(120):
    a = random.randrange(A) if random.random() < 0.5 else int(Q.weight[s].argmax())
    n = max(0, min(S - 1, s + (a - 1)))
    r = 1.0 if n == S - 1 else 0.0
    with torch.no_grad():
        target = r + (0.0 if r else 0.9 * Q(torch.tensor([n])).max().item())
    q = Q(torch.tensor([s]))[0, a]
    loss = 0.5 * (q - target) ** 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    s = 0 if r else n
