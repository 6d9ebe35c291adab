# mistake: a language model sees the tokens
embed, out = nn.Embedding(20, 16), nn.Linear(16, 20)
layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
body = nn.TransformerEncoder(layer, 1)
net = nn.ModuleList([embed, body, out])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
causal = nn.Transformer.generate_square_subsequent_mask(9)
for i in range(8):
    ids = (torch.randint(20, (16, 1)) + torch.arange(10)) % 20
    h = body(embed(ids[:, :-1]))  #- here
    h = body(embed(ids[:, :-1]), mask=causal, is_causal=True)  #+
    opt.zero_grad()
    F.cross_entropy(out(h).transpose(1, 2), ids[:, 1:]).backward()
    opt.step()
