# mistake: waits for the data
def decode(seed):
    pixels = np.random.RandomState(seed).rand(12).astype("float32")
    for _ in range(1200):  #-
        pixels = np.sort(np.tanh(pixels * 1.01))[::-1].copy()  #-
    return pixels

class Compressed(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        pixels = torch.from_numpy(decode(i))
        return pixels, pixels.mean().reshape(1)

model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Compressed(), batch_size=8, shuffle=True)  # here
losses = []
for epoch in range(1):
    for pixels, brightness in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(pixels), brightness)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
