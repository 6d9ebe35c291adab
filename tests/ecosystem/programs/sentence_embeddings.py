"""sentence-transformers: encoding, similarity and one training with a contrastive loss."""

import tempfile
from pathlib import Path

import torch
from sentence_transformers import InputExample, SentenceTransformer, losses, models, util
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel, BertTokenizer

torch.manual_seed(0)
words = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on mat fast a".split()
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(Path(folder, "vocab.txt"))).save_pretrained(folder)
    BertModel(
        BertConfig(
            vocab_size=len(words),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
        )
    ).save_pretrained(folder)
    word = models.Transformer(folder, max_seq_length=16)
    model = SentenceTransformer(
        modules=[word, models.Pooling(word.get_word_embedding_dimension(), "mean")], device="cpu"
    )
sentences = ["the cat sat on the mat", "a dog ran fast", "the cat ran"]
embeddings = model.encode(sentences, convert_to_tensor=True, show_progress_bar=False)
print("similar", *model.similarity(embeddings, embeddings).flatten().tolist())
print("cosine", *util.cos_sim(embeddings[:1], embeddings[1:]).flatten().tolist())
found = util.semantic_search(embeddings[:1], embeddings, top_k=2)[0]
print("search", *[hit["corpus_id"] for hit in found])
score = losses.MultipleNegativesRankingLoss(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
pairs = [InputExample(texts=[sentences[0], sentences[2]]), InputExample(texts=sentences[1:])]
loader = DataLoader(pairs, batch_size=2, collate_fn=model.smart_batching_collate)
seen = []
model.eval()
for _ in range(3):
    for features, labels in loader:
        loss = score(features, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seen.append(loss.item())
print("losses", *seen)
