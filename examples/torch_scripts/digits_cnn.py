"""Blobs of four shapes recognised by a convolutional network with batch normalisation."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """12x12 images of a bar, a column, a cross or a frame, somewhere in noise."""

    def __init__(self, n, seed):
        self.n = n
        self.generator = torch.Generator().manual_seed(seed)
        self.images, self.labels = [], []
        for i in range(n):
            image = 0.3 * torch.rand(1, 12, 12, generator=self.generator)
            r, c = torch.randint(0, 6, (2,), generator=self.generator).tolist()
            label = i % 4
            part = image[0, r : r + 6, c : c + 6]
            if label == 0:
                part[2:4, :] += 0.7
            elif label == 1:
                part[:, 2:4] += 0.7
            elif label == 2:
                part += 0.7 * torch.eye(6)
                part += 0.7 * torch.eye(6).flip(0)
            else:
                part += 0.7
                part[1:5, 1:5] -= 0.7
            self.images.append(image)
            self.labels.append(label)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(16 * 3 * 3, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(self.dropout(torch.flatten(x, 1)))


torch.manual_seed(0)
train = DataLoader(Shapes(400, seed=1), batch_size=32, shuffle=True)
test = DataLoader(Shapes(100, seed=2), batch_size=100)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)
for epoch in range(8):
    model.train()
    for images, labels in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    scheduler.step()
model.eval()
with torch.no_grad():
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
print(f"{correct} of 100 right, loss {loss.item():.4f}")
assert correct >= 95
