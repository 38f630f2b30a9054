//===- OptionsTest.cpp - options of the executables -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/options.h"
#include "../TestFiles.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

TrainOptions parse(std::vector<std::string> arguments) {
  std::string help;
  arguments.insert(arguments.begin(), {"--data=x", "--steps=5"});
  return *parseTrainOptions("./train", arguments, help);
}
void refuses(const std::vector<std::string> &arguments, const std::string &message) {
  expectError([&] { parse(arguments); }, message);
}

TEST(Options, ValuesAreTakenWithAndWithoutEquals) {
  TrainOptions options = parse({"--lr=1e-3", "--min-lr", "0.0001", "--shuffle", "--ignore-label=3", "--ignore-label",
                                "4", "--seed=18446744073709551615", "--batch-ramp=2:4,5:8", "--trace=t",
                                "--trace-steps=3-7", "--on-nonfinite=skip", "--input=mask=m.npy"});
  EXPECT_EQ(options.learningRate, 1e-3);
  EXPECT_EQ(options.minLearningRate, 1e-4);
  EXPECT_TRUE(options.shuffle);
  EXPECT_EQ(options.ignoreLabels, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(options.seed, UINT64_MAX);
  EXPECT_EQ(options.batchRamp, (std::vector<std::pair<int64_t, int64_t>>{{2, 4}, {5, 8}}));
  EXPECT_EQ(options.traceSteps, std::pair(int64_t(3), int64_t(7)));
  EXPECT_TRUE(options.skipNonfinite);
  EXPECT_EQ(options.inputs[0], std::pair(std::string("mask"), std::string("m.npy")));
}

TEST(Options, UnknownOnesNameTheNearestAndWhatIsAccepted) {
  refuses({"--warmup-step=3"}, "unknown option '--warmup-step', did you mean '--warmup-steps'?; accepted are --ranks");
  refuses({"--zzzzzzzzzzzz"}, "unknown option '--zzzzzzzzzzzz'; accepted are --ranks");
  refuses({"--checkpoint-dir=d"}, "unknown option '--checkpoint-dir'");
  refuses({"--resume"}, "unknown option '--resume'");
}

TEST(Options, BadValuesNameOptionValueAndWhatIsAccepted) {
  refuses({"--lr=fast"}, "--lr=fast: expected a number of at least 0");
  refuses({"--lr=nan"}, "--lr=nan: expected a number of at least 0");
  refuses({"--lr=1e999"}, "--lr=1e999: expected a number");
  refuses({"--lr="}, "--lr=: expected a number");
  refuses({"--warmup-steps=-1"}, "--warmup-steps=-1: expected an integer of at least 0");
  refuses({"--warmup-steps=1.5"}, "--warmup-steps=1.5: expected an integer");
  refuses({"--threads=0"}, "--threads=0: expected an integer of at least 1");
  refuses({"--threads=4097"}, "--threads=4097: expected an integer of at most 4096");
  refuses({"--threads=99999999999999999999"}, "expected an integer of at most 4096");
  refuses({"--warmup-steps=99999999999999999999"}, "expected an integer of at most 9223372036854775807");
  refuses({"--eps=0"}, "--eps=0: expected a number above 0");
  refuses({"--eps=nan"}, "--eps=nan: expected a number above 0");
  refuses({"--peak-flops=0"}, "--peak-flops=0: expected a number above 0");
  refuses({"--seed=-3"}, "--seed=-3: expected an integer of at least 0");
  refuses({"--beta2=1"}, "--beta2=1: expected a number below 1");
  refuses({"--min-lr=1"}, "--min-lr=1: expected at most --lr");
  refuses({"--shuffle=yes"}, "--shuffle=yes: expected no value");
  refuses({"--lr"}, "--lr: expected a value, --lr=RATE");
  refuses({"--lr", "--shuffle"}, "--lr: expected a value, --lr=RATE");
  refuses({"--lr=1", "--lr=2"}, "--lr: given twice");
  refuses({"--on-nonfinite=ignore"}, "--on-nonfinite=ignore: expected exit or skip");
  refuses({"--ignore-label=-1"}, "--ignore-label=-1: expected a token id");
  refuses({"--batch-ramp=4"}, "--batch-ramp=4: expected STEP:G");
  refuses({"--batch-ramp=4:2,4:3"}, "expected ascending steps, but 4 follows 4");
  refuses({"--trace-steps=5-2"}, "--trace-steps=5-2: expected a step or FIRST-LAST");
  refuses({"--input=x"}, "--input=x: expected NAME=FILE.npy");
  refuses({"--input=x=ones"}, "--input=x=ones: expected NAME=FILE.npy; a constant is compiled in, by 'drover compile "
                              "--input=x=ones'");
  refuses({"--input=x=a", "--input=x=b"}, "input 'x' is given twice");
  refuses({"data.txt"}, "unexpected argument 'data.txt'");
  refuses({"--save-weights="}, "--save-weights=: expected a value that is not empty");
}

TEST(Options, WhatHasNoEffectIsRefused) {
  refuses({"--reset-positions"}, "--reset-positions: expected --document-separator=TOKEN with it");
  refuses({"--mask-after-separator"}, "--mask-after-separator: expected --document-separator=TOKEN with it");
  refuses({"--trace-steps=1"}, "--trace-steps: expected --trace=FILE.json with it");
  refuses({"--dump-step=1"}, "--dump-step: expected --dump=REGEX with it");
  refuses({"--dump-file=d.safetensors"}, "--dump-file: expected --dump=REGEX with it");
  refuses({"--log-all-ranks"}, "--log-all-ranks: expected --log=FILE.jsonl with it");
  refuses({"--peak-flops=1"}, "--peak-flops: expected --log=FILE.jsonl with it");
  refuses({"--trace=t", "--trace-steps=6-9"}, "--trace-steps=6-9: expected a step of the 5 there are");
  refuses({"--dump=.", "--dump-step=6"}, "--dump-step=6: expected a step of the 5 there are");
  refuses({"--batch-ramp=5:4,6:8"}, "--batch-ramp=6:8: expected a step of the 5 there are");
  refuses({"--global-batch=4", "--batch-ramp=1:8"},
          "--global-batch=4: is used in no step, since --batch-ramp begins with step 1");
  parse({"--global-batch=4", "--batch-ramp=2:8", "--trace=t", "--trace-steps=5-9", "--dump=.", "--dump-step=5"});
}

TEST(Options, WhatIsWrittenIsWrittenOnce) {
  refuses({"--save-weights=w.safetensors", "--save-gradients=./w.safetensors"},
          "--save-weights and --save-gradients are both ./w.safetensors: expected different files");
  refuses({"--log=a/../l", "--trace=l"}, "--log and --trace are both l: expected different files");
  refuses({"--log=x"}, "--data and --log are both x: expected different files");
  refuses({"--model=m.onnx", "--flight-recorder=m.onnx"}, "--model and --flight-recorder are both m.onnx");
  refuses({"--dump=.", "--dump-file=l.safetensors", "--log=l.safetensors"},
          "--log and --dump-file are both l.safetensors");
  parse({"--init=m.onnx", "--model=m.onnx", "--log=dump.safetensors"});
}

TEST(Options, WeightsGoToAFileOrAFolderAndGradientsToAFile) {
  for (const char *path : {"w.safetensors", "out/w.safetensors", "weights", "out/weights", "run.3/", "..", "/tmp"})
    EXPECT_EQ(parse({std::string("--save-weights=") + path}).saveWeights, path);
  for (const char *path : {"w.safetensor", "w.bin", "out/w.pt"})
    refuses({std::string("--save-weights=") + path},
            std::string("--save-weights=") + path + ": expected FILE.safetensors or a folder");
  for (const char *path : {"g", "g/", "g.npy", "g.safetensors/"})
    refuses({std::string("--save-gradients=") + path},
            std::string("--save-gradients=") + path + ": expected a name that ends in .safetensors");
}

TEST(Options, RequiredOnesAreNamed) {
  std::string help;
  expectError([&] { parseTrainOptions("train", {"--steps=1"}, help); }, "expected --data=");
  expectError([&] { parseTrainOptions("train", {"--data=x"}, help); }, "expected --steps=");
  expectError([&] { parseForwardOptions("forward", {}, help); }, "expected --output-dir=DIR");
}

TEST(Options, HelpListsEveryOptionWithItsDefault) {
  std::string help;
  EXPECT_FALSE(parseTrainOptions("/a/b/train", {"--help"}, help));
  EXPECT_EQ(help.find("usage: train --data=PATH"), 0u);
  for (const char *name : {"ranks",
                           "threads",
                           "data",
                           "steps",
                           "seed",
                           "shuffle",
                           "global-batch",
                           "batch-ramp",
                           "document-separator",
                           "reset-positions",
                           "mask-after-separator",
                           "ignore-label",
                           "lr",
                           "min-lr",
                           "warmup-steps",
                           "weight-decay",
                           "beta1",
                           "beta2",
                           "eps",
                           "grad-clip",
                           "on-nonfinite",
                           "init",
                           "model",
                           "save-weights",
                           "save-gradients",
                           "log",
                           "trace"})
    EXPECT_NE(help.find(std::string("  --") + name), std::string::npos) << name;
  EXPECT_NE(help.find("(default 0.95)"), std::string::npos);
  EXPECT_FALSE(parseForwardOptions("forward", {"-h"}, help));
  EXPECT_NE(help.find("--output-dir=DIR"), std::string::npos);
}

TEST(Options, ForwardTakesRepeatedInputs) {
  std::string help;
  ForwardOptions options =
      *parseForwardOptions("f", {"--ranks=1", "--input", "a=1.npy", "--input=b=2=3.npy", "--output-dir=o"}, help);
  ASSERT_EQ(options.inputs.size(), 2u);
  EXPECT_EQ(options.inputs[1].second, "2=3.npy");
}

} // namespace
