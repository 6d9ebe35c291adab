# mistake: grows from step to step
class CharRNN(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x, state):
        y, state = self.lstm(self.embed(x), state)
        return self.out(y), state

text = torch.randint(0, 15, (4, 81))
model = CharRNN(15, 16)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
state = (torch.zeros(1, 4, 16), torch.zeros(1, 4, 16))
total = 0.0
for i in range(0, 80, 10):
    optimizer.zero_grad()
    state = tuple(s.detach() for s in state)  #+
    out, state = model(text[:, i : i + 10], state)  # here
    loss = F.cross_entropy(out.transpose(1, 2), text[:, i + 1 : i + 11])
    loss.backward(retain_graph=True)  #-
    loss.backward()  #+
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    for p in model.parameters():  #-
        p.data.add_(p.grad, alpha=-0.01)  #-
    optimizer.step()  #+
    total += loss.item()
