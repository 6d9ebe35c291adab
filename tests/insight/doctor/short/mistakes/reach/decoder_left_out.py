# mistake: in no optimizer
encoder, decoder = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
opt = clew.optim.Adam(encoder.parameters(), lr=0.01)  #- here
opt = clew.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)  #+
for step in range(8):
    opt.zero_grad()
    F.mse_loss(decoder(encoder(x)), x).backward()
    opt.step()
