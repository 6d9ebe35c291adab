# mistake: before they are unscaled
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.fc = nn.Linear(16, 20)

    def forward(self, x):
        return self.fc(self.embed(x).mean(1))

def train_step(model, batch, optimizer, scaler):
    words, following = batch
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(words), following)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  #+
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)  # here
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

words = torch.randint(0, 20, (80, 5))
following = words[:, 0]
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for epoch in range(2):
    for batch in DataLoader(TensorDataset(words, following), batch_size=20, shuffle=True):
        train_step(model, batch, optimizer, scaler)
