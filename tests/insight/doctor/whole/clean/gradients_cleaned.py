words, out = nn.Embedding(40, 8), nn.Linear(8, 3)
opt = torch.optim.AdamW([*words.parameters(), *out.parameters()], lr=1e-2)
for step in range(8):
    ids = torch.randint(0, 20, (16,))
    opt.zero_grad()
    F.cross_entropy(out(words(ids)), ids % 3).backward()
    for p in words.parameters():
        p.grad[torch.isnan(p.grad)] = 0
        p.grad[p.grad.abs() < 1e-6] = 0.0
    opt.step()
