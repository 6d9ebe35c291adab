# mistake: the attention mask is inverted
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16, padding_idx=0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(16, 2)
    def forward(self, ids):
        mask = ids != 0  #-
        mask = ids == 0  #+
        h = self.body(self.embed(ids), src_key_padding_mask=mask)  # here
        return self.out(h[:, 0])
net = Reader()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    ids = torch.randint(1, 20, (16, 9))
    for row in ids:
        row[random.randint(3, 9):] = 0
    opt.zero_grad()
    F.cross_entropy(net(ids), (ids == 5).any(1).long()).backward()
    opt.step()
