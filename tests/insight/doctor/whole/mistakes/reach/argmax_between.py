# mistake: cut off
class Quant(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(6, 8)
        self.book = nn.Embedding(8, 4)
        self.dec = nn.Linear(4, 6)
    def forward(self, x):
        code = self.enc(x).argmax(dim=1)  #- here
        code = self.enc(x).softmax(1)  #+
        return self.dec(self.book(code))  #-
        return self.dec(code @ self.book.weight)  #+
m = Quant()
x = torch.randn(64, 6)
opt = torch.optim.Adam(m.parameters(), lr=1e-2)
for _ in range(10):
    loss = F.mse_loss(m(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
