#!/usr/bin/env python3
"""Models as their users have them, on one and more ranks beside PyTorch: zoo.py [NAME…]

Architectures of transformers, and of torchvision, timm and diffusers where these are installed. Each is made small, with
seeded weights, and exported with torch.export. Its own tp_plan splits it; without one, the first embedding is split, or
every second convolution's output channels. A line for each model says how far it came, and by how much its first output differs
from PyTorch's, relative to the largest value. With --dtype bf16 or f16 it is the root of the mean square of the errors, in
that of PyTorch's own, both against f64. It takes an hour; no test runs it.
"""

import argparse
import copy
import importlib.util
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
warnings.simplefilter("ignore")

import torch
import transformers

from ops import get_tool, load, save

VOCABULARY, TOKENS, PIXELS, SAMPLES, LABELS = 96, 8, 32, 4000, 64
TOLERANCE = 1e-4
MAX_RATIO = 1.3  # of errors, in narrow types
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}

# What makes a configuration small, by the name of its field; a field that a configuration lacks is left out.
SMALL = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "d_model": 64, "n_embd": 64, "dim": 64, "embedding_size": 64, "word_embed_proj_dim": 64,
    "intermediate_size": 128, "ffn_dim": 128, "d_ff": 128, "n_inner": 128, "hidden_dim": 128, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
    "ffn_hidden_size": 128, "feed_forward_proj_size": 128, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2, "num_decoder_layers": 2,
    "num_encoder_layers": 2, "depth": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "num_key_value_heads": 4, "head_dim": 16, "d_kv": 16, "attention_head_size": 16,
    "max_position_embeddings": 64, "n_positions": 64, "n_ctx": 64, "max_sequence_length": 64, "type_vocab_size": 2,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_num_experts": 4, "moe_k": 2, "n_group": 2,
    "topk_group": 1, "first_k_dense_replace": 1, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
    "v_head_dim": 16, "sliding_window": 4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0,
    "image_size": PIXELS, "patch_size": 8, "num_channels": 3,
}

CAUSAL, MASKED, PAIR, IMAGE, AUDIO, BASE = "CausalLM", "MaskedLM", "Seq2SeqLM", "ImageClassification", "CTC", "base"

# Architecture: its task, and what its configuration needs besides.
MODELS = {
    **{name: (CAUSAL, {}) for name in (
        "gpt2 gpt_neox gptj opt bloom codegen llama mistral qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 stablelm starcoder2 falcon mpt olmo olmo2 "
        "cohere cohere2 granite glm glm4 smollm3 nemotron persimmon ernie4_5 exaone4 helium seed_oss arcee biogpt xglm ctrl openai-gpt mixtral "
        "qwen2_moe qwen3_moe olmoe gpt_oss deepseek_v2 deepseek_v3 phimoe granitemoe glm4_moe diffllama bitnet mamba apertus hunyuan_v1_dense").split()},
    "gpt_neo": (CAUSAL, {"attention_types": [[["global", "local"], 1]], "window_size": 4}),
    **{name: (MASKED, {}) for name in (
        "bert roberta distilbert albert electra deberta deberta-v2 mpnet xlm-roberta camembert modernbert convbert mobilebert squeezebert roformer "
        "nystromformer fnet esm layoutlm").split()},
    **{name: (PAIR, {}) for name in "t5 mt5 bart mbart pegasus m2m_100 marian blenderbot longt5 prophetnet".split()},
    **{name: (IMAGE, {}) for name in "vit deit beit dinov2 swin convnext resnet regnet mobilenet_v2 segformer poolformer pvt levit efficientnet".split()},
    **{name: (AUDIO, {}) for name in "wav2vec2 hubert wavlm".split()},
    "clip": (BASE, {}), "whisper": (BASE, {"max_source_positions": 32, "num_mel_bins": 16}),
}
SPECIAL = {
    "esm": {"position_embedding_type": "rotary", "mask_token_id": 3}, "mobilebert": {"intra_bottleneck_size": 64, "true_hidden_size": 64},
    "swin": {"embed_dim": 16, "depths": [1, 1], "num_attention_heads": [2, 4], "num_heads": [2, 4], "window_size": 2,
             "patch_size": 4},
    "convnext": {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
    "resnet": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]},
    "regnet": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "groups_width": 8},
    "segformer": {"hidden_sizes": [16, 32, 32, 64], "num_attention_heads": [1, 2, 2, 4], "depths": [1, 1, 1, 1], "decoder_hidden_size": 32},
    "poolformer": {"hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1], "patch_size": 16},
    "pvt": {"hidden_sizes": [16, 32, 32, 64], "num_attention_heads": [1, 2, 2, 4], "depths": [1, 1, 1, 1]},
    "levit": {"hidden_sizes": [16, 32, 64], "num_attention_heads": [1, 2, 4], "depths": [1, 1, 1], "key_dim": [8, 8, 8], "image_size": 64, "patch_size": 16,
              "architectures": ["LevitForImageClassificationWithTeacher"]},
    "beit": {"use_absolute_position_embeddings": True},
    "wav2vec2": {"conv_dim": [32, 32], "conv_kernel": [10, 3], "conv_stride": [5, 2], "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
    "mamba": {"state_size": 8}, "phi3": {"pad_token_id": 0}, "longt5": {"local_radius": 3}, "deepseek_v3": {"head_dim": 8},
    "deit": {"architectures": ["DeiTForImageClassificationWithTeacher"]},
    "layoutlm": {"max_2d_position_embeddings": 64},
    "clip": {"text_config": {key: SMALL[key] for key in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                                         "max_position_embeddings", "eos_token_id")},
             "vision_config": {key: SMALL[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "image_size",
                                                           "patch_size")}},
    "squeezebert": {"embedding_size": 64}, "efficientnet": {"hidden_dim": 2560}, "prophetnet": {"hidden_size": 64},
    "granite": {}, "bloom": {"hidden_size": 64}, "codegen": {"rotary_dim": 8}, "gptj": {"rotary_dim": 8}, "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 4},
}
for name in ("hubert", "wavlm"):
    SPECIAL[name] = SPECIAL["wav2vec2"]

# Other libraries: the call that makes a model, and its inputs.
IMAGES = {
    **{f"torchvision/{name}": f"models.{name}(weights=None)" for name in (
        "resnet18 resnet50 vgg11 densenet121 mobilenet_v3_small efficientnet_b0 convnext_tiny swin_t squeezenet1_0 shufflenet_v2_x0_5 regnet_y_400mf "
        "mnasnet0_5").split()},
    "torchvision/vit": f"models.VisionTransformer(image_size={PIXELS}, patch_size=8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128)",
    **{f"timm/{name}": f"create_model('{name}', num_classes=16)" for name in (
        "resnet10t mobilenetv3_small_050 efficientnet_lite0 convnext_atto convmixer_768_32 nfnet_f0 ghostnet_050 hardcorenas_a").split()},
    **{f"timm/{name}": f"create_model('{name}', num_classes=16, img_size=64, depth=2)" for name in (
        "vit_tiny_patch16_224 deit_tiny_patch16_224 beit_base_patch16_224 cait_xxs24_224 xcit_nano_12_p16_224 eva02_tiny_patch14_224").split()},
    "timm/mixer": "create_model('mixer_s32_224', num_classes=16, img_size=64)",
    "timm/swin": "create_model('swin_tiny_patch4_window7_224', num_classes=16, img_size=64, window_size=4)",
}
BLOCKS = "block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8"
DIFFUSION = {
    "diffusers/unet": (f"UNet2DModel(sample_size=16, {BLOCKS}, down_block_types=('DownBlock2D', 'AttnDownBlock2D'), "
                       "up_block_types=('AttnUpBlock2D', 'UpBlock2D'))",
                       {"sample": (2, 3, 16, 16), "timestep": "time"}),
    "diffusers/unet-condition": (f"UNet2DConditionModel(sample_size=16, {BLOCKS}, cross_attention_dim=32, attention_head_dim=8, "
                                 "down_block_types=('CrossAttnDownBlock2D', 'DownBlock2D'), up_block_types=('UpBlock2D', 'CrossAttnUpBlock2D'))",
                                 {"sample": (2, 4, 16, 16), "timestep": "time", "encoder_hidden_states": (2, 8, 32)}),
    "diffusers/vae": (f"AutoencoderKL({BLOCKS}, down_block_types=('DownEncoderBlock2D',) * 2, up_block_types=('UpDecoderBlock2D',) * 2)",
                      {"sample": (2, 3, 16, 16)}),
    "diffusers/dit": ("DiTTransformer2DModel(num_attention_heads=4, attention_head_dim=16, num_layers=2, sample_size=16, in_channels=4, "
                      "num_embeds_ada_norm=16, norm_num_groups=8)",
                      {"hidden_states": (2, 4, 16, 16), "timestep": "time", "class_labels": "time"}),
    "diffusers/sd3": ("SD3Transformer2DModel(sample_size=16, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=4, "
                      "joint_attention_dim=32, caption_projection_dim=64, pooled_projection_dim=32, out_channels=4, pos_embed_max_size=16)",
                      {"hidden_states": (2, 4, 16, 16), "timestep": "time", "encoder_hidden_states": (2, 8, 32), "pooled_projections": (2, 32)}),
}


class Failed(Exception):
    pass


def make_config(name, special):
    config_class = type(transformers.AutoConfig.for_model(name))
    fields = set(inspect.signature(config_class.__init__).parameters) | set(vars(config_class())) | set(config_class.attribute_map)
    small = {key: value for key, value in SMALL.items() if key in fields and not isinstance(getattr(config_class(), key, None), (list, tuple, dict))}
    return config_class(**small | SPECIAL.get(name, {}) | special, num_labels=LABELS)


def is_installed(name):
    return "/" not in name or importlib.util.find_spec(name.split("/")[0])


def make_foreign(name):
    """A model of another library, and its inputs."""
    library = importlib.import_module(name.split("/")[0])
    code, shapes = DIFFUSION.get(name, (None, None))
    torch.manual_seed(0)
    model = randomized(eval(f"library.{code or IMAGES[name]}").eval())
    if not code:
        size = PIXELS if name == "torchvision/vit" else 64 if "img_size" in IMAGES[name] else 128
        return model, {list(inspect.signature(model.forward).parameters)[0]: torch.randn(2, 3, size, size)}
    return model, {key: torch.tensor([3, 7]) if shape == "time" else torch.randn(shape) for key, shape in shapes.items()}


def make_model(name):
    task, special = MODELS[name]
    config = make_config(name, special)
    factory = transformers.AutoModel if task == BASE else getattr(transformers, f"AutoModelFor{task}")
    torch.manual_seed(0)
    return randomized(factory.from_config(config).eval()), task


def randomized(model):
    """PyTorch's initial biases are zero, and its norms' weights are one."""
    with torch.no_grad():
        for value in model.parameters():
            if value.is_floating_point():
                value.add_(torch.randn_like(value) * 0.05)
        for key, value in model.named_buffers():
            if key.endswith("running_mean"):
                value.normal_()
            elif key.endswith("running_var"):
                value.uniform_(0.5, 2)
    return model


def make_inputs(name, task, model):
    ids = torch.randint(3, VOCABULARY, (2, TOKENS))
    if task == CAUSAL:
        return {"input_ids": ids, "use_cache": False}
    if task == MASKED:
        masks = "attention_mask" in inspect.signature(model.forward).parameters  # fnet has none in transformers 4
        return {"input_ids": ids} | ({"attention_mask": torch.ones_like(ids)} if masks else {})
    if task == PAIR:
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": ids.flip(1), "use_cache": False}
    if task == IMAGE:
        size = 64 if name in ("levit",) else PIXELS
        return {"pixel_values": torch.randn(2, 3, size, size)}
    if task == AUDIO:
        return {"input_values": torch.randn(2, SAMPLES)}
    if name == "clip":
        return {"input_ids": ids, "pixel_values": torch.randn(2, 3, PIXELS, PIXELS)}
    if name == "whisper":
        return {"input_features": torch.randn(2, 16, 64), "decoder_input_ids": ids, "use_cache": False}
    raise Failed(f"no inputs for {name}")


def first_tensor(output):
    """The first tensor of an output, and its name in the program."""
    if isinstance(output, torch.Tensor):
        return "output", output
    for key, value in output.items() if hasattr(output, "items") else enumerate(output):
        if isinstance(value, torch.Tensor):
            return key if isinstance(key, str) else f"output{key}", value
    raise Failed("the output has no tensor")


def call(*arguments):
    result = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True)
    if result.returncode:
        raise Failed(f"{pathlib.Path(str(arguments[0])).name}: {result.stderr.strip() or result.returncode}")
    return result.stdout + result.stderr


def make_plan(model, ranks):
    plan = dict(getattr(model, "tp_plan", None) or getattr(model, "_tp_plan", None) or {})
    if not plan:
        embeddings = [key for key, module in model.named_modules() if isinstance(module, torch.nn.Embedding)]
        if embeddings:
            plan = {re.sub(r"\b\d+\b", "*", embeddings[0]): "embedding_rowwise"}
    if plan:
        return {"mesh": {"tp": ranks}, "match": "hf", "plan": plan}
    convolutions = [key for key, module in model.named_modules() if isinstance(module, torch.nn.Conv2d)]
    return {"mesh": {"tp": ranks}, "plan": {f"{key}.weight": ["Shard(0)"] for key in convolutions[::2]}}


def compare_with_f64(model, inputs, result, expected):
    """The error of `result` by that of `expected`, which PyTorch computed in the same type."""
    wide = {key: value.double() if torch.is_tensor(value) and value.is_floating_point() else value for key, value in inputs.items()}
    with torch.no_grad():
        exact = first_tensor(copy.deepcopy(model).double()(**wide))[1]
    ours, theirs = ((value.double() - exact).square().mean().sqrt() for value in (result, expected))
    return (ours / theirs).item()


def run(name, ranks, tools, folder, strict, dtype, stages):
    """The difference by ranks; `stages` gets when each stage began."""
    def stage(key):
        stages[key] = time.monotonic()
    stage("make")
    if "/" in name:
        model, inputs = make_foreign(name)
    else:
        model, task = make_model(name)
        inputs = make_inputs(name, task, model)
    if dtype != torch.float32:
        model = model.to(dtype)
        inputs = {key: value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value for key, value in inputs.items()}
    with torch.no_grad():
        expected_name, expected = first_tensor(model(**inputs))
    stage("export")
    with torch.no_grad():
        program = torch.export.export(model, (), inputs, strict=strict)
    torch.export.save(program, folder / "model.pt2")
    stage("import")
    call(tools["tp-import"], folder / "model.pt2", "-o", folder / "model.mlir", "--weights", folder / "w.safetensors")
    files = []
    for key, value in inputs.items():
        if isinstance(value, torch.Tensor):
            save(folder / f"{key}.npy", value)
            files += ["--input", f"{key}={folder / key}.npy"]
    differences = {}
    for count in ranks:
        stage(f"plan {count}")
        (folder / "plan.json").write_text(json.dumps(make_plan(model, count)))
        call(tools["tp-opt"], folder / "model.mlir", f"--tp-parallelize=plan={folder}/plan.json", "-o", folder / "ranks.mlir")
        stage(f"compile {count}")
        call(tools["tp-compile"], folder / "ranks.mlir", "-o", folder / "model.tpx")
        stage(f"run {count}")
        call(tools["tp-run"], folder / "model.tpx", "--weights", folder / "w.safetensors", "--allow-unused-weights", *files, "--output",
             f"{expected_name}={folder}/y.npy")
        result = load(folder / "y.npy", expected.dtype)
        if dtype == torch.float32:
            differences[count], allowed = ((result - expected).abs().max() / expected.abs().max()).item(), TOLERANCE
        else:
            differences[count], allowed = compare_with_f64(model, inputs, result, expected), MAX_RATIO
        if not differences[count] < allowed:
            raise Failed(f"differs by {differences[count]:.1e} on {count} ranks")
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="architectures (default: all)")
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 4], help="(default: 1 2 4); none: import only")
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--dtype", choices=DTYPES, default="f32", help="of the model (default: %(default)s)")
    parser.add_argument("--strict", action="store_true", help="export with strict=True, as transformers 4 needs it")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the files of each model in this folder")
    options = parser.parse_args()
    tools = {name: get_tool(options.tools, name) for name in ("tp-import", "tp-opt", "tp-compile", "tp-run")}
    right = 0
    names = options.names or [name for name in [*MODELS, *IMAGES, *DIFFUSION] if is_installed(name)]
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            folder = options.keep / name if options.keep else pathlib.Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            stages = {}
            try:
                differences = run(name, options.ranks, tools, folder, options.strict, DTYPES[options.dtype], stages)
                right += 1
                print(f"ok   {name}: {' '.join(f'{count}: {value:.2g}' for count, value in differences.items())}", flush=True)
            except Exception as error:
                text = " ".join(str(error).split())
                print(f"FAIL {name}, {list(stages)[-1]}: {type(error).__name__ if not isinstance(error, Failed) else ''} {text[:600]}", flush=True)
    print(f"{right} of {len(names)} models equal PyTorch's")
    return right != len(names)


if __name__ == "__main__":
    sys.exit(main())
