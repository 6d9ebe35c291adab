PAD, BOS = 0, 1
class Seq2Seq(nn.Module):
    def __init__(self, vocab=20, dim=16):
        super().__init__()
        self.src, self.tgt = nn.Embedding(vocab, dim, padding_idx=PAD), nn.Embedding(vocab, dim)
        self.encoder, self.decoder = nn.GRU(dim, dim, batch_first=True), nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, source, target, forcing=0.5):
        _, h = self.encoder(self.src(source))
        h, word, outputs = h[0], target[:, 0], []
        for t in range(1, target.shape[1]):
            h = self.decoder(self.tgt(word), h)
            scores = self.out(h)
            outputs.append(scores)
            word = target[:, t] if random.random() < forcing else scores.argmax(1)
        return torch.stack(outputs, 1)

source = torch.randint(2, 20, (60, 6))
source[:, 4:] = torch.where(torch.rand(60, 2) < 0.5, source[:, 4:], PAD)
target = torch.cat([torch.full((60, 1), BOS), source], 1)
model, criterion = Seq2Seq(), nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    for s, t in DataLoader(TensorDataset(source, target), batch_size=20, shuffle=True):
        out = model(s, t)
        loss = criterion(out.flatten(0, 1), t[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
