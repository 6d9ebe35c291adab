# mistake: view() where permute() was meant
class Reader(nn.Module):
    def __init__(self, vocab=40, hidden=12):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(vocab, 10)
        self.rnn = nn.LSTM(10, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 3)

    def forward(self, ids):
        _, (h, _) = self.rnn(self.embed(ids))
        h = h.view(-1, 2 * self.hidden)  #- here
        h = h.transpose(0, 1).reshape(-1, 2 * self.hidden)  #+
        return self.out(F.dropout(h, 0.2, self.training))

reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=2e-3)
for step in range(10):
    ids = torch.randint(0, 40, (16, 6))
    optimizer.zero_grad()
    F.cross_entropy(reader(ids), ids[:, 0] % 3).backward()
    optimizer.step()
