normal = torch.randn(200, 12) @ torch.randn(12, 12) * 0.3
odd = torch.randn(40, 12) * 2
train, held = normal[:160], normal[160:]
enc, dec = [nn.Linear(12, 6), nn.ELU(), nn.Linear(6, 3)], [nn.Linear(3, 6), nn.ELU()]
ae = nn.Sequential(*enc, nn.ELU(), *dec, nn.Linear(6, 12))
opt = torch.optim.Adam(ae.parameters(), lr=2e-3, weight_decay=1e-5)
for epoch in range(4):
    ae.train()
    for (batch,) in DataLoader(TensorDataset(train), batch_size=32, shuffle=True):
        loss = F.mse_loss(ae(batch), batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
ae.eval()
with torch.no_grad():
    err = lambda x: (ae(x) - x).pow(2).mean(1)
    limit = err(held).quantile(0.95)
    print((err(odd) > limit).float().mean().item())
