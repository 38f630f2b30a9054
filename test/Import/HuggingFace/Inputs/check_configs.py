"""usage: check_configs.py DROVER. Changes valid configurations, one field or two at a time, and expects each to be one error
with the given text, or (text None) to be accepted."""
import json
import os
import subprocess
import sys
import tempfile

LLAMA = dict(model_type="llama", vocab_size=32, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=24)
QWEN = dict(LLAMA, model_type="qwen3", head_dim=4, sliding_window=8, use_sliding_window=True)
MISTRAL = dict(LLAMA, model_type="mistral", sliding_window=8)
PHI3 = dict(LLAMA, model_type="phi3")
GEMMA = dict(LLAMA, model_type="gemma", head_dim=4)
NEOX = dict(model_type="gpt_neox", vocab_size=32, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=24)
GPT2 = dict(model_type="gpt2", vocab_size=32, n_embd=16, n_layer=2, n_head=4, n_positions=64)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)

# Base, what is changed (a key with None is removed; JSON null is the string "null"), what the error says.
CASES = [
    (LLAMA, {}, None), (NEOX, {}, None), (GPT2, {}, None),
    (LLAMA, dict(rope_scaling=LLAMA3), None),
    (LLAMA, dict(rope_parameters=dict(LLAMA3, rope_theta=5e5)), None),
    (LLAMA, dict(model_type=None, architectures=["LlamaForCausalLM"]), None),
    (LLAMA, dict(pad_token_id="null", head_dim="null"), None),
    (QWEN, {}, None), (QWEN, dict(layer_types=["full_attention", "sliding_attention"]), None), (MISTRAL, {}, None),
    # Missing.
    (LLAMA, dict(model_type=None), "config is missing 'model_type', one of gemma, gpt2"),
    (LLAMA, dict(vocab_size=None), "config is missing 'vocab_size', a positive integer"),
    (LLAMA, dict(hidden_size="null"), "config is missing 'hidden_size'"),
    (GPT2, dict(n_head=None), "config is missing 'n_head'"),
    (NEOX, dict(intermediate_size=None), "config is missing 'intermediate_size'"),
    # Of another type, out of range.
    (LLAMA, dict(vocab_size=-5), "'vocab_size' to be a positive integer below 2^31, not -5"),
    (LLAMA, dict(vocab_size=0), "'vocab_size' to be a positive integer"),
    (LLAMA, dict(num_hidden_layers=2.5), "'num_hidden_layers' to be a positive integer below 2^31, not 2.5"),
    (LLAMA, dict(hidden_size=1 << 40), "'hidden_size' to be a positive integer below 2^31"),
    (LLAMA, dict(hidden_size="wide"), "'hidden_size' to be a positive integer"),
    (LLAMA, dict(rms_norm_eps="small"), "'rms_norm_eps' to be a finite number"),
    (LLAMA, dict(rms_norm_eps=-1e-5), "a norm epsilon from 0 to below 1 in 'rms_norm_eps', not -1e-05"),
    (LLAMA, dict(rms_norm_eps=2), "a norm epsilon from 0 to below 1 in 'rms_norm_eps', not 2"),
    (NEOX, dict(layer_norm_eps=-1), "a norm epsilon from 0 to below 1 in 'layer_norm_eps', not -1"),
    (GPT2, dict(layer_norm_epsilon=-1), "a norm epsilon from 0 to below 1 in 'layer_norm_epsilon', not -1"),
    (LLAMA, dict(initializer_range=-0.02), "an initializer_range that is not negative"),
    (LLAMA, dict(tie_word_embeddings="yes"), "'tie_word_embeddings' to be true or false"),
    (LLAMA, dict(model_type=7), "'model_type' to be a string"),
    (LLAMA, dict(rope_scaling=8), "'rope_scaling' to be an object"),
    (LLAMA, dict(num_hidden_layers=2000000000), "at most 10000 layers, not 2000000000"),
    (LLAMA, dict(head_dim=1 << 30), "heads times head size below 2^31, not 4 * 1073741824"),
    (QWEN, dict(max_window_layers=-1), "'max_window_layers' to be an integer from 0 below 2^31, not -1"),
    (QWEN, dict(max_window_layers=0), None),
    (LLAMA, dict(rope_scaling=dict(LLAMA3, original_max_position_embeddings=-64)), "'original_max_position_embeddings' to be a positive integer below 2^31, not -64"),
    (LLAMA, dict(rope_scaling=dict(LLAMA3, original_max_position_embeddings=0.5)), "'original_max_position_embeddings' to be a positive integer below 2^31, not 0.5"),
    (LLAMA, dict(rope_scaling=dict(type="linear", factor=-2.0)), "a positive factor"),
    (NEOX, dict(rotary_emb_base=-1), "a positive rope theta, not -1"),
    # Of what the program does not depend on.
    (LLAMA, dict(torch_dtype="float8"), "'torch_dtype' to be float32, float16, bfloat16, not 'float8'"),
    (LLAMA, dict(dtype="half"), "'dtype' to be float32, float16, bfloat16, not 'half'"),
    (LLAMA, dict(torch_dtype=16), "'torch_dtype' to be a string"),
    (LLAMA, dict(torch_dtype="bfloat16"), None), (LLAMA, dict(dtype="null"), None),
    (LLAMA, dict(use_cache=1), "'use_cache' to be true or false"),
    (LLAMA, dict(pretraining_tp=0), "'pretraining_tp' to be a positive integer"),
    (GPT2, dict(n_ctx=-1), "'n_ctx' to be a positive integer"),
    (dict(QWEN, use_sliding_window=False), dict(sliding_window=-1), "'sliding_window' to be a positive integer"),
    # Contradictions.
    (LLAMA, dict(hidden_size=18), "the number of heads (4) to divide the hidden size (18)"),
    (LLAMA, dict(num_key_value_heads=3), "the number of key/value heads (3) to divide the number of heads (4)"),
    (LLAMA, dict(head_dim=5), "an even number of rotary channels a head, not 5"),
    (LLAMA, dict(architectures=["GPT2LMHeadModel"]), "model_type 'llama' but architecture 'GPT2LMHeadModel'"),
    (LLAMA, dict(architectures=["LlamaForSequenceClassification"]), "a causal language model expects 'LlamaForCausalLM'"),
    (LLAMA, dict(rope_theta=1e4, rope_parameters=dict(rope_theta=5e5)), "but 'rope_parameters' has"),
    (LLAMA, dict(rope_scaling=dict(LLAMA3), rope_parameters=dict(LLAMA3, rope_theta=5e5)), "which differ in 'rope_theta'"),
    (LLAMA, dict(rope_theta=5e5, rope_scaling=dict(LLAMA3), rope_parameters=dict(LLAMA3, rope_theta=5e5)), None),
    (LLAMA, dict(rope_scaling=dict(factor=2.0), rope_parameters=dict(rope_type="linear", factor=2.0)), "which differ in 'rope_type'"),
    (LLAMA, dict(rope_scaling={}, rope_parameters=dict(rope_theta=5e5)), None),
    (LLAMA, dict(rope_scaling=dict(rope_type=5)), "'rope_type' of the rope settings to be a string"),
    (LLAMA, dict(rope_scaling=dict(LLAMA3, factor=4.0), rope_parameters=dict(LLAMA3, rope_theta=5e5)), "which differ in 'factor'"),
    (LLAMA, dict(rope_scaling=dict(type="wizard"), rope_parameters=dict(rope_theta=5e5)), "which differ in 'rope_type'"),
    (LLAMA, dict(rope_theta=0), "a positive rope theta"),
    (NEOX, dict(rope_theta=12345), "which this model reads from 'rotary_emb_base' and 'rope_parameters': 10000"),
    (NEOX, dict(rope_theta=12345, rotary_emb_base=12345), None),
    (NEOX, dict(partial_rotary_factor=0.5), "which this model reads from 'rotary_pct' and 'rope_parameters': 0.25"),
    # What stands within the settings of either spelling holds; outside it must be the same.
    (LLAMA, dict(rope_scaling=dict(LLAMA3, rope_theta=5e5)), None),
    (LLAMA, dict(rope_theta=1e4, rope_scaling=dict(LLAMA3, rope_theta=5e5)), "config has 'rope_theta' 10000 but 'rope_scaling' has 500000"),
    (PHI3, dict(partial_rotary_factor=0.5, rope_parameters=dict(partial_rotary_factor=1.0)), "config has 'partial_rotary_factor' 0.5 but 'rope_parameters' has 1"),
    (LLAMA, dict(rope_scaling={k: v for k, v in LLAMA3.items() if k[:3] != "ori"}, max_position_embeddings=64), None),
    (LLAMA, dict(rope_scaling={k: v for k, v in LLAMA3.items() if k[:3] != "ori"}), "'original_max_position_embeddings' of the rope settings to be a number"),
    (LLAMA, dict(rope_scaling=LLAMA3, original_max_position_embeddings=32), "config has 'original_max_position_embeddings' 32 but 'rope_scaling' has 64"),
    (PHI3, dict(partial_rotary_factor=0.5), None),
    (NEOX, dict(rotary_pct=1.5), "a partial rotary factor above 0 and up to 1"),
    (LLAMA, dict(rope_scaling=dict(LLAMA3, factor=None)), "'factor' of the rope settings to be a number"),
    (LLAMA, dict(rope_scaling=dict(LLAMA3, low_freq_factor=4.0)), "rope"),
    (QWEN, dict(layer_types=["sliding_attention"]), "one entry a layer (2), not 1"),
    (QWEN, dict(layer_types=["full_attention", "linear"]), "full_attention or sliding_attention, not 'linear'"),
    (QWEN, dict(layer_types="full_attention"), "'layer_types' to be a list of strings"),
    (QWEN, dict(use_sliding_window=False, layer_types=["full_attention", "sliding_attention"]), "but no window"),
    (LLAMA, dict(layer_types=["sliding_attention"] * 2), "but no window"),
    (MISTRAL, dict(layer_types=["full_attention", "sliding_attention"]), "'sliding_window' holds for all layers"),
    (GPT2, dict(n_embd=None, hidden_size=16, num_hidden_layers=2), None),
    (GPT2, dict(hidden_size=32), "config has 'hidden_size' 32 but 'n_embd' 16, which name one size"),
    (GEMMA, dict(hidden_act="gelu", hidden_activation="gelu_pytorch_tanh"), None),
    (GEMMA, dict(hidden_act="gelu", hidden_activation="gelu"), "'hidden_activation' 'gelu' but 'hidden_act' 'gelu', which for Gemma is another function"),
    # What is left out is what transformers has for it.
    (MISTRAL, dict(num_key_value_heads=None), "the number of key/value heads (8) to divide the number of heads (4)"),
    (GEMMA, dict(num_key_value_heads=None), "the number of key/value heads (16) to divide"),
    (QWEN, dict(num_key_value_heads=None), "the number of key/value heads (32) to divide"),
    (MISTRAL, dict(num_key_value_heads="null", sliding_window="null"), None),
    (LLAMA, dict(num_key_value_heads=None), None),
    # What the model's code does not read would be another model.
    (LLAMA, dict(partial_rotary_factor=0.5), "a partial rotary factor of 0.5, which this model's code does not read; expected is 1"),
    (QWEN, dict(rope_parameters=dict(partial_rotary_factor=0.5)), "a partial rotary factor of 0.5, which this model's code does not read"),
    (NEOX, dict(head_dim=16), "config has 'head_dim' 16, where this model has 8"),
    (NEOX, dict(head_dim=8), None),
    # Not supported.
    (PHI3, dict(rope_scaling=dict(type="linear", factor=2.0)), "unsupported rope scaling 'linear'; supported for this model is default"),
    (GEMMA, dict(use_bidirectional_attention=True), "config has use_bidirectional_attention; supported is causal attention"),
    (LLAMA, dict(is_causal=False), "config has 'is_causal' false; supported is causal attention"), (LLAMA, dict(is_causal=True), None),
    (LLAMA, dict(quantization_config=dict(bits=4)), "config has a quantization_config"),
    (LLAMA, dict(num_local_experts=8), "config has 'num_local_experts' 8; supported are models with one MLP a layer"),
    (QWEN, dict(num_experts=128), "config has 'num_experts' 128; supported are models with one MLP a layer"),
    (LLAMA, dict(num_local_experts=0, attention_dropout=0.0), None), (LLAMA, dict(num_local_experts="null"), None),
    (LLAMA, dict(attention_dropout="some"), "'attention_dropout' to be a finite number"),
    (LLAMA, dict(attention_dropout=-0.1), "'attention_dropout' to be a rate from 0 to 1, not -0.1"),
    (GPT2, dict(embd_pdrop=10), "'embd_pdrop' to be a rate from 0 to 1, not 10"),
    (LLAMA, dict(architectures="LlamaForCausalLM"), "'architectures' to be a list of strings"),
    (LLAMA, dict(model_type="bert"), "config has an unsupported model 'bert'; supported are gemma, gpt2"),
    (LLAMA, dict(hidden_act="relu"), "'hidden_act' to be silu, gelu, gelu_new, gelu_pytorch_tanh or gelu_fast, not 'relu'"),
    (LLAMA, dict(rope_scaling=dict(rope_type="yarn", factor=2.0)), "unsupported rope scaling 'yarn'"),
    (LLAMA, dict(rope_parameters=dict(full_attention=dict(rope_theta=5e5))), "config has 'full_attention' in 'rope_parameters'"),
    (LLAMA, dict(rope_scaling=dict(LLAMA3, mrope_section=[1, 2])), "config has 'mrope_section' in 'rope_scaling'"),
    (LLAMA, dict(rope_scaling=dict(type="linear", factor=2.0, attention_factor=None)), None),
    (GPT2, dict(add_cross_attention=True), "config has add_cross_attention"),
]
# Every size of every architecture is 1 or more.
LLAMAS = [dict(LLAMA, model_type=name) for name in ("llama", "mistral", "qwen2", "phi3", "gemma")] + [QWEN]
SIZES = [(base, key) for base in LLAMAS for key in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "head_dim", "max_position_embeddings")]
SIZES += [(NEOX, key) for key in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings")]
SIZES += [(GPT2, key) for key in ("vocab_size", "n_embd", "n_layer", "n_head", "n_inner", "n_positions")]
CASES += [(base, {key: value}, f"'{key}' to be a positive integer below 2^31, not {value}") for base, key in SIZES for value in (0, -1)]

TEXTS = [("", "config is not JSON"), ("[" * 100000, "config nests deeper"), ("[1, 2]", "config expects a JSON object"), ('{"model_type": "llama"', "config is not JSON"),
         ("{}", "config is missing 'model_type'"),
         ('{"model_type": "llama", "architectures": [3]}', "'architectures' to be a list of strings"),
         ('{"model_type": "llama", "architectures": "a:{", "vocab_size": 1e999}', "'architectures' to be a list of strings"),
         (json.dumps(LLAMA)[:-1] + ', "rms_norm_eps": NaN}', "config is not JSON"),
         (json.dumps(LLAMA)[:-1] + ', "rms_norm_eps": 1e999}', "'rms_norm_eps' to be a finite number"),
         # What is wrong is reported where it stands.
         ('{\n  "model_type": "llama",\n  "vocab_size": 0}', "config.json:3:3: error: config expects 'vocab_size'"),
         ('{"model_type": "llama",\n "hidden_size": 8, "hidden\\u005fsize": 16}', "config.json:2:20: error: config has 'hidden_size' twice"),
         (json.dumps(LLAMA)[:-1] + ',\n"rope_scaling": {"factor": 2,\n "factor": 3}}', "config.json:3:2: error: config has 'factor' twice"),
         (json.dumps(LLAMA)[:-1] + ',\n"rope_scaling": {"rope_type": "linear",\n "factor": "2"}}', "config.json:3:2: error: config expects 'factor'"),
         (json.dumps(LLAMA)[:-1] + ', "other": [{"a": 1}, {"a": "\\"a\\": 1, "}], "a": 2}', None)]


def main():
    drover = sys.argv[1]
    cases = list(TEXTS)
    for base, change, expected in CASES:
        config = {key: value for key, value in {**base, **change}.items() if value is not None}
        cases.append((json.dumps({key: None if value == "null" else value for key, value in config.items()}), expected))
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        for text, expected in cases:
            with open(path, "w") as file:
                file.write(text)
            done = subprocess.run([drover, "import", path, "-o", os.devnull], capture_output=True, text=True)
            right = done.returncode == 0 if expected is None else (
                done.returncode == 1 and done.stderr.count("error: ") == 1 and expected in done.stderr)
            if not right:
                faults += 1
                print(f"{text}\n  expected {expected}, got status {done.returncode}: {done.stderr}")
    print(f"{len(cases)} configurations, {faults} faults")
    return bool(faults)


sys.exit(main())
