# mistake: clipped where it has no effect
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.rnn = nn.GRU(12, 20, batch_first=True)
        self.out = nn.Linear(20, 4)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])

tagger = Tagger()
params = tagger.parameters()  #-
params = list(tagger.parameters())  #+
optimizer = torch.optim.SGD(params, lr=0.2, momentum=0.9)
for step in range(10):
    ids = torch.randint(0, 30, (8, 9))
    scores = tagger(ids)
    loss = F.cross_entropy(scores.flatten(0, 1), (ids % 4).flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, max_norm=0.25)  # here
    optimizer.step()
