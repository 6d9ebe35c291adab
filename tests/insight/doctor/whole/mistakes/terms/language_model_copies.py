# mistake: inputs
class Causal(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(32, d)
        self.block = nn.TransformerEncoderLayer(d, 2, 2 * d, batch_first=True, dropout=0.0)
        self.head = nn.Linear(d, vocab)

    def forward(self, x):
        t = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        h = self.tok(x) + self.pos(torch.arange(t))
        return self.head(self.block(h, src_mask=mask))

text = torch.randint(0, 25, (1200,))
net = Causal(25, 16)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(16):
    start = torch.randint(0, 1100, (16,))
    batch = torch.stack([text[i : i + 13] for i in start])
    x, y = batch[:, :-1], batch[:, :-1]  #-
    x, y = batch[:, :-1], batch[:, 1:]  #+
    logits = net(x)
    loss = F.cross_entropy(logits.transpose(1, 2), y)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
