emb, out = nn.Embedding(20, 8), nn.Linear(8, 3)
fixed = emb.weight[:10].detach().clone()
opt = torch.optim.SGD([*emb.parameters(), *out.parameters()], lr=0.1)
for _ in range(8):
    ids = torch.randint(0, 20, (32,))
    loss = F.cross_entropy(out(emb(ids)), ids % 3)
    opt.zero_grad()
    loss.backward()
    emb.weight.grad[:10] = 0
    opt.step()
