# mistake: integer division
class Photos(Dataset):
    def __init__(self, count=60):
        self.pixels = torch.randint(0, 256, (count, 3, 6, 6), dtype=torch.uint8)
        self.labels = (self.pixels.float().mean((1, 2, 3)) > 127).long()

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, i):
        image = self.pixels[i] // 255  #- here
        image = self.pixels[i] / 255  #+
        return image.float(), self.labels[i]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.fc = nn.Linear(8 * 16, 2)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).flatten(1))

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for image, label in DataLoader(Photos(), batch_size=20, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(image), label).backward()
        optimizer.step()
