x = torch.linspace(-3, 3, 64, dtype=torch.float64).unsqueeze(1)
y = torch.sin(x) + 0.1 * torch.randn(64, 1, dtype=torch.float64)
model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
model = model.double()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
history = []
for epoch in range(12):
    prediction = model(x)
    loss = ((prediction - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
model.eval()
with torch.no_grad():
    residual = (model(x) - y).abs().max().item()
