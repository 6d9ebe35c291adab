class Tagger(nn.Module):
    def __init__(self, vocab=9, tags=3):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(vocab, 6), nn.LSTM(6, 6)
        self.tag = nn.Linear(6, tags)

    def forward(self, sentence):
        out, _ = self.lstm(self.embed(sentence).view(len(sentence), 1, -1))
        return F.log_softmax(self.tag(out.view(len(sentence), -1)), dim=1)

training = [
    (torch.tensor([0, 1, 2, 0, 3]), torch.tensor([0, 1, 2, 0, 1])),
    (torch.tensor([4, 5, 6, 0, 7]), torch.tensor([1, 2, 0, 0, 1])),
    (torch.tensor([8, 1, 2]), torch.tensor([1, 1, 2])),
]
model, loss_function = Tagger(), nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(6):
    for sentence, tags in training:
        model.zero_grad()
        tag_scores = model(sentence)
        loss = loss_function(tag_scores, tags)
        loss.backward()
        optimizer.step()
with torch.no_grad():
    scores = model(training[0][0])
