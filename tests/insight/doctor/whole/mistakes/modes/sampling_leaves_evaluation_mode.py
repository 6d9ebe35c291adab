# mistake: training goes on in evaluation mode
class CharModel(nn.Module):
    def __init__(self, vocab=12, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.drop, self.out = nn.Dropout(0.2), nn.Linear(width, vocab)

    def forward(self, ids, state=None):
        h, state = self.rnn(self.drop(self.embed(ids)), state)
        return self.out(self.drop(h)), state

    @torch.no_grad()
    def sample(self, start, length):
        was = self.training  #+
        self.eval()  # here
        ids, state = [start], None
        for _ in range(length):
            scores, state = self(torch.tensor([[ids[-1]]]), state)
            ids.append(torch.multinomial(scores[0, -1].softmax(0), 1).item())
        self.train(was)  #+
        return ids

text = torch.randint(0, 12, (400,))
model = CharModel()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(12):
    at = torch.randint(0, 380, (8,))
    chunk = torch.stack([text[a : a + 16] for a in at.tolist()])
    scores, _ = model(chunk[:, :-1])
    loss = F.cross_entropy(scores.transpose(1, 2), chunk[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(model.sample(0, 6))
