class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.embed.weight
    def forward(self, t):
        mask = nn.Transformer.generate_square_subsequent_mask(t.shape[1])
        return self.head(self.body(self.embed(t), mask=mask))
net = LM()
opt = clew.optim.AdamW(net.parameters(), lr=1e-3)
warm = clew.optim.lr_scheduler.LambdaLR(opt, lambda i: min(1.0, (i + 1) / 100))
text = clew.randint(0, 20, (8, 9))
for step in range(8):
    out = net(text[:, :-1])
    loss = F.cross_entropy(out.reshape(-1, 20), text[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    warm.step()
net.eval()
with clew.inference_mode():
    net(text)[:, -1].argmax(-1)
