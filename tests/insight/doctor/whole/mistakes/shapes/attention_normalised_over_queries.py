# mistake: softmax
class SelfAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        weights = F.softmax(scores, dim=2)  #- here
        weights = F.softmax(scores, dim=-1)  #+
        y = (weights @ v).transpose(1, 2).reshape(b, t, d)
        return self.out(y)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.attention = SelfAttention(16, 2)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        x = self.embed(x)
        return self.fc((x + self.attention(x)).mean(1))

tokens = torch.randint(0, 30, (64, 9))
labels = (tokens.sum(1) % 2).long()
net = Model()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in DataLoader(TensorDataset(tokens, labels), batch_size=16, shuffle=True):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
