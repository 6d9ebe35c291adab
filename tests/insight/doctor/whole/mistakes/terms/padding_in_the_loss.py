# mistake: padding
PAD, BOS, EOS = 0, 1, 2

class Seq2Seq(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, source, target):
        _, h = self.encoder(self.embed(source))
        y, _ = self.decoder(self.embed(target), h)
        return self.out(y)

def batch(n=16, longest=9):
    source = torch.zeros(n, longest, dtype=torch.long)
    target = torch.zeros(n, longest + 2, dtype=torch.long)
    for i in range(n):
        size = random.randint(3, longest)
        words = torch.randint(3, 30, (size,))
        source[i, :size] = words
        target[i, 0] = BOS
        target[i, 1 : size + 1] = words.flip(0)
        target[i, size + 1] = EOS
    return source, target

net = Seq2Seq(30, 24)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()  #-
criterion = nn.CrossEntropyLoss(ignore_index=PAD)  #+
for step in range(14):
    source, target = batch()
    logits = net(source, target[:, :-1])
    loss = criterion(logits.reshape(-1, 30), target[:, 1:].reshape(-1))  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
