"""Whole programs with a silent mistake, as users write them; marked as in doctor_programs.py."""

from __future__ import annotations

WHOLE_HEADER = """
import copy, math, random, time
from collections import deque
import numpy as np
import clew as torch
from clew import nn
from clew.nn import functional as F
from clew.utils.data import DataLoader, Dataset, TensorDataset, Subset, random_split
torch.manual_seed(0)
np.random.seed(0)
random.seed(0)
"""

WHOLE: dict[str, tuple[str, str]] = {
    "tagger_with_softmax": (
        "softmax before cross_entropy",
        """
class Tagger(nn.Module):
    def __init__(self, vocab, tags, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * dim, tags)

    def forward(self, words):
        hidden, _ = self.rnn(self.embed(words))
        scores = self.head(hidden)
        scores = torch.softmax(scores, dim=-1)  #- here
        return scores

words = torch.randint(0, 30, (64, 7))
tags = words % 5
model = Tagger(30, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for epoch in range(2):
    for batch, wanted in DataLoader(TensorDataset(words, tags), batch_size=16, shuffle=True):
        optimizer.zero_grad()
        out = model(batch)
        loss = criterion(out.transpose(1, 2), wanted)
        loss.backward()
        optimizer.step()
""",
    ),
    "likelihood_by_hand": (
        "softmax",
        """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        out = self.fc2(F.relu(self.fc1(x)))
        return F.softmax(out, dim=1)  #-
        return out  #+

def cross_entropy(out, y):
    log_probs = torch.log(F.softmax(out, dim=1))  #- here
    log_probs = F.log_softmax(out, dim=1)  #+
    return -log_probs[torch.arange(len(y)), y].mean()

states = torch.randn(128, 6)
actions = states[:, :4].argmax(1)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for step in range(12):
    index = torch.randint(0, 128, (32,))
    loss = cross_entropy(policy(states[index]), actions[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "nll_of_probabilities": (
        "log_softmax missing",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        x = self.fc(x.flatten(1))
        return F.softmax(x, dim=1)  #-
        return F.log_softmax(x, dim=1)  #+

def train(model, loader, optimizer, epoch):
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)  # here
        loss.backward()
        optimizer.step()

images = torch.randn(96, 1, 8, 8)
digits = torch.randint(0, 10, (96,))
loader = DataLoader(TensorDataset(images, digits), batch_size=16, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
for epoch in range(1, 3):
    train(model, loader, optimizer, epoch)
""",
    ),
    "multi_label_sigmoid": (
        "sigmoid before binary_cross_entropy_with_logits",
        """
class MultiLabel(nn.Module):
    def __init__(self, features, labels):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(32, labels)
        self.act = nn.Sigmoid()

    def forward(self, x):
        x = self.head(self.body(x))
        return self.act(x)  #-
        return x  #+

x = torch.randn(120, 10)
y = (x[:, :6] > 0.3).float()
weights = (y == 0).sum(0) / (y == 1).sum(0)
model = MultiLabel(10, 6)
loss_fn = nn.BCEWithLogitsLoss(pos_weight=weights)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(3):
    model.train()
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True):
        pred = model(xb)
        loss = loss_fn(pred, yb)  # here
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
""",
    ),
    "rmse_of_columns": (
        "broadcast",
        """
class Houses(Dataset):
    def __init__(self, rows=100):
        generator = np.random.default_rng(3)
        self.x = generator.normal(size=(rows, 5)).astype("float32")
        self.y = (self.x @ np.array([1.0, 2.0, -1.0, 0.5, 0.0])).astype("float32")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

def rmse(prediction, truth):
    return torch.sqrt(torch.mean((prediction - truth) ** 2))  # here

model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(Houses(), batch_size=25, shuffle=True)
for epoch in range(3):
    running = 0.0
    for inputs, prices in loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        outputs = outputs.squeeze(1)  #+
        loss = rmse(outputs, prices)
        loss.backward()
        optimizer.step()
        running += loss.item()
""",
    ),
    "huber_of_value_net": (
        "broadcast",
        """
class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, s):
        return self.layers(s)

memory = deque(maxlen=200)
for _ in range(120):
    memory.append((np.random.randn(4), random.randrange(2), random.random(), np.random.randn(4)))
online, target = QNet(), QNet()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.RMSprop(online.parameters(), lr=1e-3)
for step in range(8):
    batch = random.sample(list(memory), 32)
    s = torch.tensor(np.array([b[0] for b in batch]), dtype=torch.float32)
    a = torch.tensor([b[1] for b in batch])
    r = torch.tensor([b[2] for b in batch], dtype=torch.float32)
    s2 = torch.tensor(np.array([b[3] for b in batch]), dtype=torch.float32)
    q = online(s).gather(1, a.unsqueeze(1))
    with torch.no_grad():
        goal = r + 0.99 * target(s2).max(1).values
    loss = F.smooth_l1_loss(q, goal)  #- here
    loss = F.smooth_l1_loss(q, goal.unsqueeze(1))  #+
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "cleared_once_for_all": (
        "never cleared",
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 8, 3, padding=1)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).mean(-1))

def fit(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    optimizer.zero_grad()
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for signal, y in loader:
            optimizer.zero_grad()  #+
            loss = loss_fn(model(signal), y)
            loss.backward()  # here
            optimizer.step()
            total += loss.item()
    return total

signals = torch.randn(80, 3, 20)
y = (signals.mean((1, 2)) > 0).long()
fit(Encoder(), DataLoader(TensorDataset(signals, y), batch_size=16, shuffle=True), 2)
""",
    ),
    "model_cleared_too_late": (
        "between backward and step",
        """
class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def step(self, x, y):
        self.model.zero_grad()  #+
        prediction = self.model(x)
        loss = self.criterion(prediction, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.model.zero_grad()  #- here
        self.optimizer.step()
        return loss.item()

    def fit(self, x, y, epochs):
        history = []
        for epoch in range(epochs):
            for i in range(0, len(x), 20):
                history.append(self.step(x[i : i + 20], y[i : i + 20]))
        return history

x = torch.randn(100, 8)
y = x[:, :2] * 2 - x[:, 2:4]
trainer = Trainer(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2)))
trainer.fit(x, y, 2)
""",
    ),
    "heads_in_a_list": (
        "plain list",
        """
class Head(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, size, bias=False) for _ in range(3))

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -torch.inf).softmax(-1) @ self.v(x)

class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = [Head(dim, dim // heads) for _ in range(heads)]  #- here
        self.heads = nn.ModuleList([Head(dim, dim // heads) for _ in range(heads)])  #+
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return x + self.proj(torch.cat([head(x) for head in self.heads], dim=-1))

embed = nn.Embedding(12, 16)
block, out = Attention(16, 4), nn.Linear(16, 12)
model = nn.Sequential(embed, block, out)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
tokens = torch.randint(0, 12, (32, 9))
for step in range(8):
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 12), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "modalities_in_a_dict": (
        "plain dict",
        """
class Fusion(nn.Module):
    def __init__(self, sizes, dim=16):
        super().__init__()
        self.encoders = {}  #-
        self.encoders = nn.ModuleDict()  #+
        for name, size in sizes.items():
            self.encoders[name] = nn.Sequential(nn.Linear(size, dim), nn.ReLU())
        self.classifier = nn.Linear(dim * len(sizes), 3)

    def forward(self, batch):
        parts = [self.encoders[name](batch[name]) for name in self.encoders]
        return self.classifier(torch.cat(parts, dim=1))

sizes = {"text": 12, "image": 20, "audio": 6}
data = {name: torch.randn(90, size) for name, size in sizes.items()}
labels = data["text"][:, :3].argmax(1)
model = Fusion(sizes)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for rows in torch.randperm(90).split(30):
        batch = {name: value[rows] for name, value in data.items()}
        loss = F.cross_entropy(model(batch), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "classifier_replaced": (
        "were replaced",
        """
class Backbone(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU())
        self.fc = nn.Linear(8 * 9, classes)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))

def adapt(model, classes):
    model.fc = nn.Linear(model.fc.in_features, classes)
    return model

model = Backbone()
model = adapt(model, 4)  #+
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)  # here
model = adapt(model, 4)  #-
images = torch.randn(64, 3, 8, 8)
labels = torch.randint(0, 4, (64,))
model.train()
for epoch in range(2):
    for inputs, targets in DataLoader(TensorDataset(images, labels), 16, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
""",
    ),
    "centres_not_optimized": (
        "in no optimizer",
        """
class CentreLoss(nn.Module):
    def __init__(self, classes, dim):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(classes, dim))

    def forward(self, features, labels):
        return (features - self.centres[labels]).pow(2).sum(1).mean()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.PReLU(), nn.Linear(32, 2))
        self.head = nn.Linear(2, 4)

    def forward(self, x):
        features = self.body(x)
        return features, self.head(features)

net, centre_loss = Net(), CentreLoss(4, 2)
x = torch.randn(96, 10)
y = x[:, :4].argmax(1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)  #- here
optimizer = torch.optim.SGD([*net.parameters(), *centre_loss.parameters()], lr=0.05)  #+
for step in range(10):
    rows = torch.randint(0, 96, (32,))
    features, scores = net(x[rows])
    loss = F.cross_entropy(scores, y[rows]) + 0.1 * centre_loss(features, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "schedule_steps_alone": (
        "never steps",
        """
class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU())
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.net(x)).squeeze(-1)

x = torch.randn(128, 6)
y = x.sum(1).sin()
model = Regressor()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)  # here
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=40)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
losses = []
for epoch in range(5):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()  #+
        scheduler.step()
        losses.append(loss.item())
""",
    ),
    "frozen_in_the_middle": (
        "frozen parameter",
        """
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.backbone(x))

def freeze(module):
    for p in module.parameters():
        p.requires_grad = False
        p.grad = None  #+

x = torch.randn(96, 8)
y = x[:, :3].argmax(1)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
for epoch in range(4):
    if epoch == 2:
        freeze(model.backbone)
    for rows in torch.randperm(96).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()  # here
""",
    ),
    "validated_while_training": (
        "evaluated in training mode",
        """
class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))

def validate(model, loader):
    model.eval()  #+
    correct = total = 0
    with torch.no_grad():
        for images, labels in loader:
            outputs = model(images)  # here
            correct += (outputs.argmax(1) == labels).sum().item()
            total += labels.size(0)
    return correct / total

images = torch.randn(96, 1, 6, 6)
labels = (images.mean((1, 2, 3)) > 0).long()
train_set, val_set = random_split(TensorDataset(images, labels), [72, 24])
train_loader = DataLoader(train_set, batch_size=24, shuffle=True)
val_loader = DataLoader(val_set, batch_size=24)
model = CNN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    validate(model, val_loader)
""",
    ),
    "train_called_once": (
        "training goes on in evaluation mode",
        """
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
""",
    ),
    "one_picture_at_a_time": (
        "batch of one",
        """
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.context = nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        x = self.down(x)
        return self.out(x + 0.1 * x.mean())

images = torch.randn(24, 3, 8, 8)
masks = (images.mean(1, keepdim=True) > 0).float()
size = 1  #-
size = 6  #+
loader = DataLoader(TensorDataset(images, masks), batch_size=size, shuffle=True)
model = UNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for picture, mask in loader:
        optimizer.zero_grad()
        out = model(picture)
        loss = F.binary_cross_entropy_with_logits(out, mask)
        loss.backward()
        optimizer.step()
""",
    ),
    "through_numpy": (
        "cut off",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 12), nn.Tanh())
        self.decoder = nn.Linear(12, 6)

    def standardize(self, h):
        array = h.detach().numpy()  #-
        array = (array - array.mean(0)) / (array.std(0) + 1e-5)  #-
        return torch.from_numpy(array)  #-
        return (h - h.mean(0)) / (h.std(0) + 1e-5)  #+

    def forward(self, x):
        return self.decoder(self.standardize(self.encoder(x)))

x = torch.randn(80, 6)
model = Model()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    order = torch.randperm(80)
    for i in range(0, 80, 40):
        rows = order[i : i + 40]
        reconstruction = model(x[rows])
        loss = criterion(reconstruction, x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "through_a_new_tensor": (
        "cut off",
        """
class Weighting(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.scores = nn.Linear(parts, parts)

    def forward(self, values):
        weights = F.softmax(self.scores(values), dim=1)
        weights = torch.tensor(weights.tolist())  #- here
        return (weights * values).sum(1, keepdim=True)

values = torch.randn(64, 5)
goal = values.max(1, keepdim=True).values
combine, scale = Weighting(5), nn.Linear(1, 1)
optimizer = torch.optim.SGD(
    [{"params": combine.parameters()}, {"params": scale.parameters(), "lr": 0.01}], lr=0.1
)
for step in range(10):
    rows = torch.randint(0, 64, (16,))
    prediction = scale(combine(values[rows]))
    loss = F.mse_loss(prediction, goal[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "history_of_losses": (
        "kept with their graphs",
        """
class Meter:
    def __init__(self):
        self.values = {"train": [], "valid": []}

    def update(self, split, value):
        self.values[split].append(value)

    def mean(self, split):
        return sum(float(v) for v in self.values[split]) / len(self.values[split])

class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.layers(x)

model, meter = MLP(), Meter()
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(120, 12)
y = x[:, :3].argmax(1)
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update("train", loss)  #-
        meter.update("train", loss.detach())  #+
""",
    ),
    "hidden_state_carried": (
        "grows from step to step",
        """
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
""",
    ),
}
