# mistake: running total
model, head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 1)
opt = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
epoch_loss = 0
for i in range(12):
    x = torch.randn(8, 6, 4)
    out, _ = model(x)
    loss = F.mse_loss(head(out[:, -1]), x.mean((1, 2)).unsqueeze(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    epoch_loss += loss * x.size(0)  #- here
    epoch_loss += loss.item() * x.size(0)  #+
