# mistake: evaluated in training mode
class Mixer(nn.Module):
    def __init__(self, tokens=6, width=8):
        super().__init__()
        self.t, self.c = nn.Linear(tokens, tokens), nn.Linear(width, width)
        self.out = nn.Linear(width, 3)

    def forward(self, x):
        x = x + F.gelu(self.t(x.transpose(1, 2))).transpose(1, 2)
        x = F.dropout(x + F.gelu(self.c(x)), p=0.3)  #- here
        x = F.dropout(x + F.gelu(self.c(x)), p=0.3, training=self.training)  #+
        return self.out(x.mean(1))

def accuracy(net, data):
    net.eval()
    with torch.no_grad():
        hits = [(net(x).argmax(1) == y).float().mean() for x, y in data]
    net.train()
    return float(sum(hits) / len(hits))

def make(n):
    x = torch.randn(n, 6, 8)
    return [(a, a[:, 0, :3].argmax(1)) for a in x.split(16)]

net, train, valid = Mixer(), make(96), make(48)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in train:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    print(accuracy(net, valid))
