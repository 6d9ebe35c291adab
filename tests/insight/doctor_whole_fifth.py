"""Whole programs with a silent mistake: dimensions, terms of the loss, the program's text."""

from __future__ import annotations

FIFTH: dict[str, tuple[str, str]] = {
    "gan_fake_not_detached": (
        "detached",
        """
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh())

    def forward(self, z):
        return self.net(z)

class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)

G, D = Generator(), Discriminator()
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
data = torch.tanh(torch.randn(256, 16))
for step in range(16):
    real = data[torch.randint(0, 256, (32,))]
    ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
    opt_g.zero_grad()
    opt_d.zero_grad()
    fake = G(torch.randn(32, 8))
    d_loss = bce(D(real), ones) + bce(D(fake), zeros)  #- here
    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)  #+
    d_loss.backward()
    opt_d.step()
    fake = G(torch.randn(32, 8))
    g_loss = bce(D(fake), ones)
    g_loss.backward()
    opt_g.step()
""",
    ),
    "diffusion_average_never_moves": (
        "average",
        """
class Denoiser(nn.Module):
    def __init__(self, dim=2, hidden=32):
        super().__init__()
        self.time = nn.Embedding(50, hidden)
        self.a = nn.Linear(dim, hidden)
        self.b = nn.Linear(hidden, hidden)
        self.c = nn.Linear(hidden, dim)

    def forward(self, x, t):
        h = F.silu(self.a(x) + self.time(t))
        return self.c(F.silu(self.b(h)))

betas = torch.linspace(1e-4, 0.05, 50)
alpha_bar = torch.cumprod(1 - betas, 0)
data = torch.randn(512, 2) * 0.3 + torch.tensor([1.0, -1.0])
model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    x0 = data[torch.randint(0, 512, (64,))]
    t = torch.randint(0, 50, (64,))
    noise = torch.randn_like(x0)
    a = alpha_bar[t][:, None]
    xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
    loss = F.mse_loss(model(xt, t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow = 0.99 * slow + 0.01 * fast  #- here
            slow.mul_(0.99).add_(fast, alpha=0.01)  #+
with torch.no_grad():
    x = average(torch.randn(16, 2), torch.full((16,), 49))
""",
    ),
    "sampler_without_epochs": (
        "order",
        """
from clew.utils.data.distributed import DistributedSampler

class Windows(Dataset):
    def __init__(self, series, width):
        self.series, self.width = series, width

    def __len__(self):
        return len(self.series) - self.width

    def __getitem__(self, i):
        return self.series[i : i + self.width], self.series[i + self.width]

def train(rank, world):
    data = Windows(torch.sin(torch.arange(140) * 0.2) + 0.1 * torch.randn(140), 12)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler)  #+
    loader = DataLoader(data, batch_size=16, sampler=sampler)  #- here
    net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(5):
        sampler.set_epoch(epoch)  #+
        for x, y in loader:
            loss = F.mse_loss(net(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()

train(0, 2)
""",
    ),
    "accuracy_of_a_column": (
        "broadcast",
        """
class Churn(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)

x = torch.randn(200, 10)
y = (x[:, 0] + x[:, 1] > 0).float()
train = TensorDataset(x[:150], y[:150])
test = TensorDataset(x[150:], y[150:])
net = Churn()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(4):
    net.train()
    for a, b in DataLoader(train, batch_size=25, shuffle=True):
        loss = F.binary_cross_entropy_with_logits(net(a).squeeze(1), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    correct = 0
    with torch.no_grad():
        for a, b in DataLoader(test, batch_size=25):
            predicted = (torch.sigmoid(net(a)) > 0.5).float()
            correct += (predicted == b).sum().item()  #- here
            correct += (predicted.squeeze(1) == b).sum().item()  #+
    accuracy = correct / len(test)
""",
    ),
    "padding_in_the_loss": (
        "padding",
        """
PAD, BOS, EOS = 0, 1, 2

class Seq2Seq(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, source, target):
        _, h = self.encoder(self.embed(source))
        y, _ = self.decoder(self.embed(target), h)
        return self.out(y)

def batch(n=16, longest=9):
    source = torch.zeros(n, longest, dtype=torch.long)
    target = torch.zeros(n, longest + 2, dtype=torch.long)
    for i in range(n):
        size = random.randint(3, longest)
        words = torch.randint(3, 30, (size,))
        source[i, :size] = words
        target[i, 0] = BOS
        target[i, 1 : size + 1] = words.flip(0)
        target[i, size + 1] = EOS
    return source, target

net = Seq2Seq(30, 24)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()  #-
criterion = nn.CrossEntropyLoss(ignore_index=PAD)  #+
for step in range(14):
    source, target = batch()
    logits = net(source, target[:, :-1])
    loss = criterion(logits.reshape(-1, 30), target[:, 1:].reshape(-1))  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "lstm_takes_batch_for_time": (
        "batch",
        """
class Activity(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.lstm = nn.LSTM(channels, 24)  #- here
        self.lstm = nn.LSTM(channels, 24, batch_first=True)  #+
        self.fc = nn.Linear(24, classes)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])

class Recordings(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 30, 6)
        self.y = (self.x.mean((1, 2)) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

net = Activity(6, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(2):
    for x, y in DataLoader(Recordings(96), batch_size=16, shuffle=True):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "positions_by_sample": (
        "position",
        """
class PositionalEncoding(nn.Module):
    def __init__(self, d, longest=200):
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(longest, 1, d)
        pe[:, 0, 0::2] = torch.sin(position * div)
        pe[:, 0, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]  #- here
        return x + self.pe[: x.size(1)].transpose(0, 1)  #+

class Classifier(nn.Module):
    def __init__(self, vocab, d, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.pos = PositionalEncoding(d)
        layer = nn.TransformerEncoderLayer(d, 2, 32, batch_first=True, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.fc = nn.Linear(d, classes)

    def forward(self, tokens):
        h = self.encoder(self.pos(self.embed(tokens)))
        return self.fc(h.mean(1))

net = Classifier(50, 16, 3)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
tokens = torch.randint(0, 50, (64, 12))
labels = tokens[:, 0] % 3
for epoch in range(3):
    for x, y in DataLoader(TensorDataset(tokens, labels), batch_size=16, shuffle=True):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "all_units_alike": (
        "alike",
        """
def weights(m):
    if isinstance(m, nn.Linear):
        nn.init.constant_(m.weight, 0.05)  #- here
        nn.init.xavier_uniform_(m.weight)  #+
        nn.init.zeros_(m.bias)

class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 32)
        self.fc2 = nn.Linear(32, 32)
        self.fc3 = nn.Linear(32, 1)
        self.apply(weights)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))

x = torch.randn(128, 8)
y = x[:, :1] * x[:, 1:2]
net = Regressor()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = F.mse_loss(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "several_labels_in_cross_entropy": (
        "cross_entropy",
        """
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
""",
    ),
    "one_norm_for_two_convolutions": (
        "normalisation",
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.bn = nn.BatchNorm2d(16)
        self.bn2 = nn.BatchNorm2d(16)  #+
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.bn(self.conv1(x)))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.bn(self.conv2(x)))  #- here
        x = F.relu(self.bn2(self.conv2(x)))  #+
        return self.fc(x.mean((2, 3)))

net = Encoder()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
images, labels = torch.randn(64, 3, 8, 8), torch.randint(0, 4, (64,))
for epoch in range(3):
    net.train()
    for x, y in DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
    ),
    "only_the_first_layer_is_used": (
        "used",
        """
class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.a = nn.Linear(d, 2 * d)
        self.b = nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))

class Tower(nn.Module):
    def __init__(self, d, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Residual(d) for _ in range(depth)])
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        for i in range(len(self.blocks)):
            x = self.blocks[0](x)  #- here
            x = self.blocks[i](x)  #+
        return self.head(x).squeeze(-1)

net = Tower(12, 4)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
x = torch.randn(160, 12)
y = x.abs().sum(1).sqrt()
for epoch in range(2):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = F.mse_loss(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "picture_seen_as_channels": (
        "permute",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        b, h, w, c = x.shape
        x = x.view(b, c, h, w)  #- here
        x = x.permute(0, 3, 1, 2)  #+
        return self.fc(F.relu(self.conv(x)).amax((2, 3)))

pictures = np.random.rand(64, 12, 12, 3).astype("float32")
labels = np.random.randint(0, 5, 64)
x, y = torch.from_numpy(pictures), torch.from_numpy(labels)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    order = torch.randperm(64)
    for i in range(0, 64, 16):
        index = order[i : i + 16]
        loss = F.cross_entropy(net(x[index]), y[index])
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
}
