# mistake: requires no grad
W1 = torch.randn(6, 16) * 0.3
W2 = torch.randn(16, 2) * 0.3  #-
W2 = (torch.randn(16, 2) * 0.3).requires_grad_()  #+
W1.requires_grad_()
opt = torch.optim.SGD([W1, W2], lr=0.1)  # here
for _ in range(10):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(torch.relu(x @ W1) @ W2, (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
