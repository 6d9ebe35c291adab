# mistake: a frozen parameter is changed
class Tagger(nn.Module):
    def __init__(self, vocab=60, dim=16, tags=5):
        super().__init__()
        self.word = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, tags)

    def forward(self, ids):
        h, _ = self.gru(self.word(ids))
        return self.out(h)

model = Tagger()
model.word.weight.data.copy_(torch.randn(60, 16))  # pretrained vectors
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)  #-
optimizer = torch.optim.AdamW(  #+
    [p for n, p in model.named_parameters() if not n.startswith("word")],  #+
    lr=1e-3,  #+
    weight_decay=0.1,  #+
)  #+
for step in range(10):
    ids = torch.randint(0, 60, (16, 9))
    tags = ids % 5
    loss = F.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    model.word.weight.grad.zero_()  # keep the vectors fixed  #- here
    optimizer.step()
