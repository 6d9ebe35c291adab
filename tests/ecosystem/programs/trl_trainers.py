"""Trainers of trl on a small Llama: supervised, with LoRA, and by preferences."""

import random
import tempfile
import warnings

import datasets
import torch
import transformers
import trl
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
datasets.disable_progress_bars()
WORDS = "a b c d the cat sat on mat dog ran good bad yes no question answer : ? .".split()
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
inner = Tokenizer(
    models.WordLevel({w: i for i, w in enumerate(SPECIAL + WORDS)}, unk_token="<unk>")
)
inner.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=inner,
    pad_token="<pad>",
    bos_token="<s>",
    eos_token="</s>",
    unk_token="<unk>",
)
draw = random.Random(0)


def text(length):
    return " ".join(draw.choice(WORDS) for _ in range(length))


def model():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.LlamaForCausalLM(config)


def run(name, trainer):
    trainer.train()
    print(name, *[step["loss"] for step in trainer.state.log_history if "loss" in step])
    total = sum(p.double().abs().sum().item() for p in trainer.model.parameters())
    print(f"{name}_weights", total)


with tempfile.TemporaryDirectory() as folder:
    options = {
        "output_dir": folder,
        "per_device_train_batch_size": 4,
        "max_steps": 4,
        "logging_steps": 1,
        "max_length": 24,
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "learning_rate": 1e-3,
        "save_strategy": "no",
        "disable_tqdm": True,
        "seed": 1,
    }
    plain = datasets.Dataset.from_dict({"text": [text(12) for _ in range(24)]})
    pairs = datasets.Dataset.from_dict(
        {
            "prompt": [text(4) for _ in range(24)],
            "chosen": [" " + text(4) for _ in range(24)],
            "rejected": [" " + text(4) for _ in range(24)],
        }
    )
    lora = LoraConfig(r=4, lora_dropout=0.0, task_type="CAUSAL_LM")
    for name, adapter in (("supervised", None), ("lora", lora)):
        trainer = trl.SFTTrainer(
            model=model(),
            args=trl.SFTConfig(**options),
            train_dataset=plain,
            processing_class=tokenizer,
            peft_config=adapter,
        )
        run(name, trainer)
    trainer = trl.DPOTrainer(
        model=model(),
        ref_model=model(),
        args=trl.DPOConfig(**options),
        train_dataset=pairs,
        processing_class=tokenizer,
    )
    run("preferences", trainer)
