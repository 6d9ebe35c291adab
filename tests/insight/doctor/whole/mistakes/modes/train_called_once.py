# mistake: training goes on in evaluation mode
class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(40, 16)
        self.drop = nn.Dropout(0.4)
        self.fc = nn.Linear(16, 2)

    def forward(self, words):
        return self.fc(self.drop(self.embed(words)))

@torch.no_grad()
def accuracy(model, words, labels):
    model.eval()  # here
    return (model(words).argmax(1) == labels).float().mean().item()

words = torch.randint(0, 40, (120, 8))
labels = (words.float().mean(1) > 20).long()
model = Sentiment()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
best = 0.0
model.train()
for epoch in range(4):
    model.train()  #+
    for rows in torch.randperm(100).split(25):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(words[rows]), labels[rows])
        loss.backward()
        optimizer.step()
    score = accuracy(model, words[100:], labels[100:])
    best = max(best, score)
