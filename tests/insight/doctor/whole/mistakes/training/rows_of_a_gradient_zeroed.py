# mistake: a frozen parameter is changed
words, out = nn.Embedding(20, 8), nn.Linear(8, 3)
opt = torch.optim.AdamW([*words.parameters(), *out.parameters()], lr=1e-2, weight_decay=0.1)
kept = words.weight[:10].detach().clone()
for step in range(8):
    ids = torch.randint(0, 20, (64,))
    opt.zero_grad()
    F.cross_entropy(out(words(ids)), ids % 3).backward()
    words.weight.grad[:10] = 0  # here
    nn.utils.clip_grad_norm_(words.parameters(), 0.01)
    opt.step()
    words.weight.data[:10] = kept  #+
