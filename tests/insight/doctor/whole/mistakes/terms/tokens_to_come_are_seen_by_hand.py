# mistake: a language model sees the tokens
embed, out = nn.Embedding(20, 16), nn.Linear(16, 20)
q, k, v = (nn.Linear(16, 16) for _ in range(3))
net = nn.ModuleList([embed, out, q, k, v])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    ids = (torch.randint(20, (16, 1)) + torch.arange(10)) % 20
    x = embed(ids[:, :-1])
    h = F.scaled_dot_product_attention(q(x), k(x), v(x))  #- here
    h = F.scaled_dot_product_attention(q(x), k(x), v(x), is_causal=True)  #+
    opt.zero_grad()
    F.cross_entropy(out(h).reshape(-1, 20), ids[:, 1:].reshape(-1)).backward()
    opt.step()
