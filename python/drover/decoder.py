"""What a config.json says of a decoder, and its random weights, for the builders and references of this folder.

Two families are enough for tests and demonstrations: llama (RMSNorm, rotary embedding, grouped-query attention, SwiGLU) and
gpt2 (LayerNorm, learned positions, packed projections stored [in, out], GELU). Names are Hugging Face's.
"""
import json

import numpy as np


def read_config(path):
    """Reads a config.json; both spellings of the rope settings. Raises ValueError for other families."""
    with open(path) as file:
        config = json.load(file)
    if config.get("model_type") not in ("llama", "gpt2"):
        raise ValueError(f"{path}: expects model_type llama or gpt2, not {config.get('model_type')}")
    return config


def sizes(config):
    """The sizes that both families have, under one set of names."""
    if config["model_type"] == "gpt2":
        hidden = config["n_embd"]
        heads = config["n_head"]
        return dict(vocab=config["vocab_size"], hidden=hidden, layers=config["n_layer"], heads=heads, kv_heads=heads,
                    head_size=hidden // heads, intermediate=config.get("n_inner") or 4 * hidden,
                    positions=config["n_positions"], eps=config.get("layer_norm_epsilon", 1e-5),
                    tied=config.get("tie_word_embeddings", True))
    heads = config["num_attention_heads"]
    rope = config.get("rope_parameters") or {}
    return dict(vocab=config["vocab_size"], hidden=config["hidden_size"], layers=config["num_hidden_layers"], heads=heads,
                kv_heads=config.get("num_key_value_heads", heads),
                head_size=config.get("head_dim") or config["hidden_size"] // heads,
                intermediate=config["intermediate_size"], theta=rope.get("rope_theta", config.get("rope_theta", 10000.0)),
                eps=config.get("rms_norm_eps", 1e-6), tied=config.get("tie_word_embeddings", False))


def parameter_shapes(config):
    """Name -> shape of every parameter, in the order of the model. A tied head has none of its own."""
    s = sizes(config)
    hidden, width = s["hidden"], s["intermediate"]
    shapes = {}
    if config["model_type"] == "gpt2":
        shapes["transformer.wte.weight"] = (s["vocab"], hidden)
        shapes["transformer.wpe.weight"] = (s["positions"], hidden)
        for layer in range(s["layers"]):
            base = f"transformer.h.{layer}."
            for name, (inputs, outputs) in {"attn.c_attn": (hidden, 3 * hidden), "attn.c_proj": (hidden, hidden),
                                            "mlp.c_fc": (hidden, width), "mlp.c_proj": (width, hidden)}.items():
                norm = {"attn.c_attn": "ln_1", "mlp.c_fc": "ln_2"}.get(name)
                if norm:
                    shapes[base + norm + ".weight"] = shapes[base + norm + ".bias"] = (hidden,)
                shapes[base + name + ".weight"] = (inputs, outputs)
                shapes[base + name + ".bias"] = (outputs,)
        shapes["transformer.ln_f.weight"] = shapes["transformer.ln_f.bias"] = (hidden,)
    else:
        query, key = s["heads"] * s["head_size"], s["kv_heads"] * s["head_size"]
        shapes["model.embed_tokens.weight"] = (s["vocab"], hidden)
        for layer in range(s["layers"]):
            base = f"model.layers.{layer}."
            shapes[base + "input_layernorm.weight"] = (hidden,)
            shapes[base + "self_attn.q_proj.weight"] = (query, hidden)
            shapes[base + "self_attn.k_proj.weight"] = (key, hidden)
            shapes[base + "self_attn.v_proj.weight"] = (key, hidden)
            shapes[base + "self_attn.o_proj.weight"] = (hidden, query)
            shapes[base + "post_attention_layernorm.weight"] = (hidden,)
            shapes[base + "mlp.gate_proj.weight"] = (width, hidden)
            shapes[base + "mlp.up_proj.weight"] = (width, hidden)
            shapes[base + "mlp.down_proj.weight"] = (hidden, width)
        shapes["model.norm.weight"] = (hidden,)
    if not s["tied"]:
        shapes["lm_head.weight"] = (s["vocab"], hidden)
    return shapes


def random_parameters(config, seed):
    """Normal weights with the configuration's initializer_range; norms near one and biases near zero, so that no gradient vanishes."""
    generator = np.random.default_rng(seed)
    deviation = config.get("initializer_range", 0.02)
    result = {}
    for name, shape in parameter_shapes(config).items():
        values = generator.standard_normal(shape) * deviation
        if len(shape) == 1 and name.endswith("weight"):
            values = 1 + values
        result[name] = values.astype(np.float32)
    return result
