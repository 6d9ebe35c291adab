# mistake: learning rate
def make_data(rows=200):
    generator = np.random.default_rng(2)
    age = generator.normal(0, 2.5, (rows, 1))
    others = generator.normal(0, 0.5, (rows, 4))
    x = np.concatenate([age, others], 1).astype("float32")
    y = x @ np.array([[3.0], [1.0], [-2.0], [0.5], [1.5]], dtype="float32")
    return torch.from_numpy(x), torch.from_numpy(y)

x, y = make_data()
model = nn.Linear(5, 1)
rate = 0.15  #-
rate = 0.02  #+
optimizer = torch.optim.SGD(model.parameters(), lr=rate)  # here
losses = []
for epoch in range(12):
    predicted = model(x)
    loss = F.mse_loss(predicted, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
