# mistake: labels are constant
class Comments(Dataset):
    def __init__(self, count):
        self.words = torch.randint(0, 50, (count, 6))
        self.names = ["spam" if int(w.sum()) > 150 else "ham" for w in self.words]
        self.index = {"ham": 0, "spam": 1}

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        label = self.index.get(self.names[i].upper(), 0)  #-
        label = self.index[self.names[i]]  #+
        return self.words[i], label

class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 12)
        self.fc = nn.Linear(12, 2)

    def forward(self, words):
        return self.fc(self.embed(words).mean(1))

model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for words, label in DataLoader(Comments(96), batch_size=24, shuffle=True):
        loss = F.cross_entropy(model(words), label)  # here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
