# mistake: the attention mask is inverted
embed, out = nn.Embedding(20, 16, padding_idx=0), nn.Linear(16, 2)
q, k, v = (nn.Linear(16, 16) for _ in range(3))
net = nn.ModuleList([embed, out, q, k, v])
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    ids = torch.randint(1, 20, (16, 9))
    for row in ids:
        row[random.randint(3, 8):] = 0
    x = embed(ids)
    scores = q(x) @ k(x).transpose(1, 2) / 4
    scores = scores.masked_fill((ids != 0).unsqueeze(1), -1e9)  #-
    scores = scores.masked_fill((ids == 0).unsqueeze(1), -1e9)  #+
    h = F.softmax(scores, dim=-1) @ v(x)  # here
    opt.zero_grad()
    F.cross_entropy(out(h.mean(1)), (ids == 5).any(1).long()).backward()
    opt.step()
