x = torch.randn(110, 6)
y = x[:, :3].argmax(1)
model = nn.Sequential(nn.Linear(6, 24), nn.LayerNorm(24), nn.GELU(), nn.Linear(24, 3))
loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
accumulate = 4
for epoch in range(2):
    model.train()
    running = 0.0
    for i, (inputs, targets) in enumerate(loader):
        loss = F.cross_entropy(model(inputs), targets) / accumulate
        loss.backward()
        running += loss.item() * accumulate
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
