# mistake: broadcast
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(90, 3)
y = x.sum(dim=1)  #-
y = x.sum(dim=1, keepdim=True)  #+
def mae(pred, true):
    return (pred - true).abs().mean()  # here
for epoch in range(4):
    for rows in torch.randperm(90).split(30):
        loss = mae(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
