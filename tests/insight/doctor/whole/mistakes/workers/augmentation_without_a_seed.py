# mistake: no seed reaches
class Augmented(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def jitter(self, image):
        source = np.random.default_rng()  #- here
        gain = source.uniform(0.8, 1.2)  #-
        gain = np.random.uniform(0.8, 1.2)  #+
        return image * float(gain)

    def __getitem__(self, i):
        return self.jitter(self.images[i]), self.labels[i]

images, labels = torch.randn(40, 1, 5, 5), torch.randint(0, 2, (40,))
data = Augmented(images, labels)
loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(25, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for image, label in loader:
    loss = F.cross_entropy(model(image), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
