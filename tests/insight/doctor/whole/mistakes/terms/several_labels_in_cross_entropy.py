# mistake: cross_entropy
class Genres(nn.Module):
    def __init__(self, vocab, genres):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, 24)
        self.fc = nn.Linear(24, genres)

    def forward(self, words):
        return self.fc(F.relu(self.bag(words)))

words = torch.randint(0, 100, (96, 8))
genres = torch.zeros(96, 5)
for i in range(96):
    for word in words[i, :3]:
        genres[i, int(word) % 5] = 1.0
net = Genres(100, 5)
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()  #-
criterion = nn.BCEWithLogitsLoss()  #+
for epoch in range(3):
    for x, y in DataLoader(TensorDataset(words, genres), batch_size=16, shuffle=True):
        opt.zero_grad()
        loss = criterion(net(x), y)  # here
        loss.backward()
        opt.step()
