"""lit configuration: `lit-22 build/test`, or one file by `lit-22 build/test --filter NAME`.

Features a test can ask for (REQUIRES:): `shared` (the data beside the project, environment variable DROVER_SHARED),
`python` (the environment that scripts/setup makes), `mpirun`, `ptxas`.
`long`: what takes minutes, with --param long=1.
Substitutions: %drover, %drover-opt, %drover-lsp-server, %python, %shared, %source (the project), %standins (libraries that stand for CUDA's), %build (the build folder),
FileCheck, not, split-file.
With --param verify_roundtrip=1 every drover-opt also prints and parses what it produced.
"""
import os
import shutil

import lit.formats

config.name = "drover"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "lit.cfg.py", "CMakeLists.txt"]
config.test_source_root = os.path.join(config.drover_source, "test")
config.test_exec_root = os.path.join(config.drover_binary, "test")

llvm_bin = "/usr/lib/llvm-22/bin"
bin_folder = os.path.join(config.drover_binary, "bin")
config.environment["PATH"] = os.pathsep.join([bin_folder, llvm_bin, os.environ.get("PATH", "")])
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --allow-unused-prefixes=false"
config.environment["DROVER_EMU_BUILD"] = config.drover_binary
for name in ("DROVER_SHARED", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

roundtrip = " --verify-roundtrip" if lit_config.params.get("verify_roundtrip") else ""
config.substitutions.append(("%drover-opt", os.path.join(bin_folder, "drover-opt") + roundtrip))
config.substitutions.append(("%drover-interpret", os.path.join(bin_folder, "drover-interpret")))
config.substitutions.append(("%drover-lsp-server", os.path.join(bin_folder, "drover-lsp-server")))
config.substitutions.append(("%drover", os.path.join(bin_folder, "drover")))
config.substitutions.append(("%source", config.drover_source))
config.substitutions.append(("%build", config.drover_binary))
config.substitutions.append(("%standins", os.path.join(config.drover_binary, "standins")))
python = config.drover_python if os.path.exists(config.drover_python) else shutil.which("python3")
config.substitutions.append(("%python", python or "python3"))
if os.path.exists(config.drover_python):
    config.available_features.add("python")
if shutil.which("mpirun"):
    config.available_features.add("mpirun")
if shutil.which("ptxas") or os.path.exists("/usr/local/cuda/bin/ptxas"):
    config.available_features.add("ptxas")
if lit_config.params.get("long"):
    config.available_features.add("long")
shared = os.environ.get("DROVER_SHARED", "")
if shared and os.path.isdir(shared):
    config.available_features.add("shared")
    config.substitutions.append(("%shared", shared))
