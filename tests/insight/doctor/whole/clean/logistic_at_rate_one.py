x = torch.randn(200, 5)
y = (x @ torch.tensor([1.0, -2.0, 0.5, 0, 0]) > 0).float()
w, b = torch.zeros(5, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([w, b], lr=1.0)
for step in range(20):
    loss = F.binary_cross_entropy_with_logits((x @ w + b).squeeze(1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
