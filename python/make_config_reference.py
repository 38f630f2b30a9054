#!/usr/bin/env python3
"""Records what Hugging Face transformers computes from small config.json files with unusual settings.

usage: make_config_reference.py -o FILE.json
Of each: the configuration, the shapes of its parameters, whose values are random_values(name, shape), and the logits of two positions of
the token ids of random_ids(vocabulary). Needs torch and transformers 5; test/Execute/config_logits.py compares.
"""
import argparse
import json
import os
import tempfile
import zlib

import numpy as np

BATCH, LENGTH, POSITIONS = 2, 12, (4, 11)

LLAMA = dict(vocab_size=17, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, intermediate_size=20,
             pad_token_id=None)
LLAMA3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=0.5, high_freq_factor=2.0)
GPT2 = dict(model_type="gpt2", vocab_size=17, n_layer=2, n_positions=16)
NEOX = dict(LLAMA, model_type="gpt_neox", num_attention_heads=3)
CONFIGS = [
    dict(LLAMA, model_type="llama", head_dim=8, attention_bias=True, mlp_bias=True, hidden_act="gelu_new", rms_norm_eps=1e-3,
         max_position_embeddings=16, rope_theta=500.0, rope_scaling=LLAMA3),
    dict(LLAMA, model_type="llama", num_key_value_heads=None, tie_word_embeddings=True,
         rope_scaling=dict(type="linear", factor=2.0, rope_theta=777.0)),
    dict(LLAMA, model_type="mistral", head_dim=8, sliding_window=3, rope_parameters=dict(rope_type="default", rope_theta=12345)),
    dict(LLAMA, model_type="qwen2", tie_word_embeddings=True, use_sliding_window=True, sliding_window=2, max_window_layers=1),
    dict(LLAMA, model_type="qwen3", head_dim=8, attention_bias=True, use_sliding_window=True, sliding_window=3,
         layer_types=["sliding_attention", "full_attention"], rope_scaling=dict(rope_type="linear", factor=1.5)),
    dict(LLAMA, model_type="phi3", num_attention_heads=3, num_key_value_heads=1, partial_rotary_factor=0.5, sliding_window=5, hidden_act="gelu"),
    dict(LLAMA, model_type="gemma", head_dim=8, hidden_act="gelu", hidden_activation="gelu_pytorch_tanh", rms_norm_eps=0.1,
         attention_bias=True),
    dict(GPT2, n_embd=24, n_head=3, n_inner=20, activation_function="silu", scale_attn_by_inverse_layer_idx=True,
         tie_word_embeddings=False, layer_norm_epsilon=1e-3),
    dict(GPT2, hidden_size=24, num_attention_heads=4, scale_attn_weights=False, reorder_and_upcast_attn=True),
    dict(NEOX, rotary_pct=0.5, rotary_emb_base=500, use_parallel_residual=False, attention_bias=False, tie_word_embeddings=True),
    dict(NEOX, hidden_act="gelu_fast", rope_scaling=dict(type="linear", factor=4.0), layer_norm_eps=0.1),
]


def random_values(name, shape):
    values = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape) * 0.3
    return (values + (name.endswith("norm.weight"))).astype(np.float32)


def random_ids(vocabulary):
    return np.random.RandomState(1).randint(0, vocabulary, (BATCH, LENGTH)).astype(np.int64)


def record(config):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(config, file)
        read = AutoConfig.from_pretrained(folder)
    model = AutoModelForCausalLM.from_config(read, dtype=torch.float32, attn_implementation="eager").eval()
    shapes = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            shapes[name] = list(parameter.shape)
            parameter.copy_(torch.from_numpy(random_values(name, parameter.shape)))
        logits = model(torch.from_numpy(random_ids(config["vocab_size"]))).logits.numpy()
    return dict(config=config, parameters=shapes, logits=[[float(f"{x:.7g}") for x in row] for row in logits[:, POSITIONS].reshape(-1, logits.shape[-1])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", required=True)
    arguments = parser.parse_args()
    with open(arguments.o, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(record(config)) for config in CONFIGS) + "\n]\n")


if __name__ == "__main__":
    main()
