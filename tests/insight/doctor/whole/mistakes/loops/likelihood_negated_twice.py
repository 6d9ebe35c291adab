# mistake: maximised
class Classifier(nn.Module):
    def __init__(self, vocab, classes):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, 16)
        self.out = nn.Linear(16, classes)

    def forward(self, ids):
        return F.log_softmax(self.out(self.embed(ids)), dim=1)

def objective(log_probs, labels):
    return -F.nll_loss(log_probs, labels)  #- here
    return F.nll_loss(log_probs, labels)  #+

model = Classifier(50, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(12):
    ids = torch.randint(0, 50, (24, 6))
    labels = ids.sum(1) % 3
    optimizer.zero_grad()
    loss = objective(model(ids), labels)
    loss.backward()
    optimizer.step()
