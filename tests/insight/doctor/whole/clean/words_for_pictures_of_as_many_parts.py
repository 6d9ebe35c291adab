embed, parts, out = nn.Embedding(20, 16), nn.Linear(6, 16), nn.Linear(16, 20)
attention = nn.MultiheadAttention(16, 2, batch_first=True)
net = nn.ModuleList([embed, parts, out, attention])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    ids = (torch.randint(20, (16, 1)) + torch.arange(10)) % 20
    picture, x = parts(torch.randn(16, 9, 6)), embed(ids[:, :-1])
    h, _ = attention(x, picture, picture, need_weights=False)
    loss = F.cross_entropy(out(x + h).transpose(1, 2), ids[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
