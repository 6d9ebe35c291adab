body, head = nn.Linear(6, 16), nn.Linear(16, 2)
x = torch.randn(96, 6)
y = (x[:, 0] > 0).long()
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.05, momentum=0.9)
for epoch in range(6):
    body.requires_grad_(epoch % 2 == 0)
    for rows in torch.randperm(96).split(24):
        optimizer.zero_grad()
        F.cross_entropy(head(body(x[rows]).relu()), y[rows]).backward()
        optimizer.step()
