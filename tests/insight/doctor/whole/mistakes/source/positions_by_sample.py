# mistake: position
class PositionalEncoding(nn.Module):
    def __init__(self, d, longest=200):
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(longest, 1, d)
        pe[:, 0, 0::2] = torch.sin(position * div)
        pe[:, 0, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]  #- here
        return x + self.pe[: x.size(1)].transpose(0, 1)  #+

class Classifier(nn.Module):
    def __init__(self, vocab, d, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.pos = PositionalEncoding(d)
        layer = nn.TransformerEncoderLayer(d, 2, 32, batch_first=True, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.fc = nn.Linear(d, classes)

    def forward(self, tokens):
        h = self.encoder(self.pos(self.embed(tokens)))
        return self.fc(h.mean(1))

net = Classifier(50, 16, 3)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
tokens = torch.randint(0, 50, (64, 12))
labels = tokens[:, 0] % 3
for epoch in range(3):
    for x, y in DataLoader(TensorDataset(tokens, labels), batch_size=16, shuffle=True):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
