PAD = 0

class Tagger(nn.Module):
    def __init__(self, vocab, tags):
        super().__init__()
        self.embed = nn.Embedding(vocab, 16, padding_idx=PAD)
        self.rnn = nn.LSTM(16, 12, batch_first=True, bidirectional=True)
        self.out = nn.Linear(24, tags)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embed(x), lengths, batch_first=True, enforce_sorted=False
        )
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(h)

def collate(rows):
    lengths = torch.tensor([len(r) for r in rows])
    words = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return words, (words % 4), lengths

rows = [torch.randint(1, 40, (random.randint(3, 9),)) for _ in range(80)]
net = Tagger(40, 4)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    for words, tags, lengths in DataLoader(rows, batch_size=16, shuffle=True, collate_fn=collate):
        logits = net(words, lengths)
        mask = (words != PAD).float()
        each = F.cross_entropy(logits.transpose(1, 2), tags, reduction="none")
        loss = (each * mask).sum() / mask.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
