# mistake: in no optimizer
class Block:  #-
class Block(nn.Module):  #+
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def __call__(self, x):  #-
    def forward(self, x):  #+
        return x + self.down(F.gelu(self.up(self.norm(x))))  # here

class Net(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.stem, self.block, self.head = nn.Linear(6, width), Block(width), nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.block(self.stem(x)))

def fit(net, data, epochs):
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
    for _ in range(epochs):
        for x, y in data:
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()

x = torch.randn(80, 6)
fit(Net(), DataLoader(TensorDataset(x, x[:, :3].argmax(1)), 16, shuffle=True), 3)
