# mistake: softmax before cross_entropy
class Tagger(nn.Module):
    def __init__(self, vocab, tags, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * dim, tags)

    def forward(self, words):
        hidden, _ = self.rnn(self.embed(words))
        scores = self.head(hidden)
        scores = torch.softmax(scores, dim=-1)  #- here
        return scores

words = torch.randint(0, 30, (64, 7))
tags = words % 5
model = Tagger(30, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for epoch in range(2):
    for batch, wanted in DataLoader(TensorDataset(words, tags), batch_size=16, shuffle=True):
        optimizer.zero_grad()
        out = model(batch)
        loss = criterion(out.transpose(1, 2), wanted)
        loss.backward()
        optimizer.step()
