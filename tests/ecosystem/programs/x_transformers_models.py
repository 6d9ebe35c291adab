"""x-transformers: a decoder trained and sampled, an encoder-decoder, a ViT."""

import torch
from x_transformers import (
    AutoregressiveWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
    ViTransformerWrapper,
    XTransformer,
)

torch.manual_seed(0)
core = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=32, attn_layers=core)
wrapper = AutoregressiveWrapper(model)
optimizer = torch.optim.Adam(wrapper.parameters(), lr=1e-3)
tokens = torch.randint(0, 64, (2, 20))
losses = []
for _ in range(3):
    loss = wrapper(tokens)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print("decoder", *losses)
torch.manual_seed(1)
print("sampled", *wrapper.generate(tokens[:1, :4], 8).flatten().tolist())
torch.manual_seed(2)
pair = XTransformer(
    dim=32,
    enc_num_tokens=32,
    enc_depth=1,
    enc_heads=2,
    enc_max_seq_len=16,
    dec_num_tokens=32,
    dec_depth=1,
    dec_heads=2,
    dec_max_seq_len=16,
)
source, target = torch.randint(0, 32, (2, 16)), torch.randint(0, 32, (2, 16))
loss = pair(source, target, mask=torch.ones(2, 16, dtype=torch.bool))
loss.backward()
print("pair", loss.item())
torch.manual_seed(3)
image = ViTransformerWrapper(
    image_size=32, patch_size=8, num_classes=5, attn_layers=Encoder(dim=32, depth=2, heads=4)
)
print("vit", *image(torch.randn(1, 3, 32, 32)).flatten().tolist())
