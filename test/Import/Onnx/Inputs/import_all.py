"""usage: import_all.py DROVER SHARED. Imports every ONNX file there. Each must succeed, or end with status 1 and one error
that names what is not supported."""
import glob
import os
import subprocess
import sys

drover, shared = sys.argv[1:]
imported = refused = improper = 0
for path in sorted(glob.glob(os.path.join(shared, "**/model.onnx"), recursive=True)):
    run = subprocess.run([drover, "import", "--no-raise", path, "-o", os.devnull], capture_output=True, text=True)
    if run.returncode == 0:
        imported += 1
    elif run.returncode == 1 and run.stderr.count("error: ") == 1 and "supported" in run.stderr:
        refused += 1
        print("refused:", os.path.basename(os.path.dirname(path)), run.stderr.strip()[:200])
    else:
        improper += 1
        print("improper:", path, run.returncode, run.stderr[:300])
print(f"{imported} imported, {refused} refused, {improper} without a proper outcome")
