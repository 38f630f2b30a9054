//===- Options.td - what drover's subcommands can be told -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Parsing, help and the messages about wrong options follow from this table (CommandLine.h). An option's visibility says
// which subcommands have it; defaults stand in parentheses.
include "llvm/Option/OptParser.td"

def ImportCommand : OptionVisibility;
def CompileCommand : OptionVisibility;
def CheckCommand : OptionVisibility;
def PlanCommand : OptionVisibility;
def CalibrateCommand : OptionVisibility;

defvar kModelReaders = [ImportCommand, CompileCommand, CheckCommand, PlanCommand];
defvar kProgramMakers = [CompileCommand, CheckCommand];
defvar kPlanTakers = [CompileCommand, CheckCommand, PlanCommand];

/// May be given several times.
def Repeatable : OptionFlag;

class Place<list<OptionVisibility> commands, OptionGroup group> {
  list<OptionVisibility> Visibility = commands;
  OptionGroup Group = group;
}

/// `--name=VALUE` and `--name VALUE`.
multiclass Value<string name, string metavar, string help, Place place, list<OptionFlag> flags = []> {
  def "" : Joined<["--"], name#"=">, MetaVarName<metavar>, HelpText<help>, Visibility<place.Visibility>,
           Group<place.Group>, Flags<flags>;
  def _separate : Separate<["--"], name>, Alias<!cast<Option>(NAME)>, Visibility<place.Visibility>, Flags<flags>;
}

class Switch<string name, string help, Place place>
    : Flag<["--"], name>, HelpText<help>, Visibility<place.Visibility>, Group<place.Group>;

def modelGroup : OptionGroup<"model">, HelpText<"model">;
def planGroup : OptionGroup<"plan">, HelpText<"plan">;
def problemGroup : OptionGroup<"problem">, HelpText<"problem">;
def programGroup : OptionGroup<"program">, HelpText<"program">;
def outputGroup : OptionGroup<"output">, HelpText<"output">;

def ofModel : Place<kModelReaders, modelGroup>;
def ofPlan : Place<kPlanTakers, planGroup>;
def ofTrained : Place<kProgramMakers, planGroup>;
def ofProgram : Place<kProgramMakers, programGroup>;
def ofProblem : Place<[PlanCommand], problemGroup>;
def ofPlaced : Place<kPlanTakers, problemGroup>;
def ofImport : Place<[ImportCommand], outputGroup>;
def ofCompile : Place<[CompileCommand], outputGroup>;
def ofCheck : Place<[CheckCommand, PlanCommand], outputGroup>;
def ofPlanned : Place<[PlanCommand], outputGroup>;
def ofCalibration : Place<[CalibrateCommand], problemGroup>;
def ofAll : Place<kModelReaders # [CalibrateCommand], outputGroup>;


// Of every command that reads a model.
defm dim : Value<"dim", "NAME=N", "fix a symbolic size; may be repeated", ofModel, [Repeatable]>;
defm input : Value<"input", "NAME=ones|zeros|arange|FILE.npy", "replace a model input by a constant; may be repeated",
                   ofModel, [Repeatable]>;
def no_tie : Switch<"no-tie", "keep an output head with the embedding's values as a parameter of its own", ofModel>;

// The plan.
defm plan : Value<"plan", "FILE.json", "a plan, each option a field; options beside it go on top", ofPlan>;
defm tp : Value<"tp", "N", "tensor-parallel ranks (1)", ofPlan>;
defm cp : Value<"cp", "N", "context-parallel ranks (1)", ofPlan>;
defm pp : Value<"pp", "N", "pipeline ranks (1)", ofPlan>;
defm dp : Value<"dp", "N", "data-parallel ranks, as FSDP (1)", ofPlan>;
defm chunks : Value<"chunks", "V", "chunks per pipeline rank (1)", ofPlan>;
defm run : Value<"run", "N[,N..]", "microbatches that a chunk runs in a row, or the sizes of the groups (PP)", ofPlan>;
defm microbatch : Value<"microbatch", "B", "sequences of a microbatch (the model's, else 1)", ofPlan>;
defm global_batch : Value<"global-batch", "G[,G..]", "sequences of a step; several may be compiled in (B*DP*PP)",
                          ofPlan>;
defm seq_len : Value<"seq-len", "S", "tokens of a sequence (the model's)", ofPlan>;
defm schedule : Value<"schedule", "1f1b|interleaved|bfs|zb-h1",
                      "order of the pipeline's work (interleaved where V > 1, else 1f1b)", ofPlan>;
defm layers_per_chunk : Value<"layers-per-chunk", "N[*TIMES],..", "layers of each chunk (as even as possible)", ofPlan>;
defm recompute : Value<"recompute", "none|selective|full",
                       "what the backward computes again: selective attention, full whole layers (none)", ofPlan>;
defm rebuild : Value<"rebuild", "auto|none|LIST", "memory-bound work to rebuild instead of stashing, a list of norms, act, "
                     "rope, casts (auto)", ofPlan>;
defm zero : Value<"zero", "0|1|2|3", "what is sharded over DP: nothing, optimizer, gradients, parameters (2)", ofPlan>;
defm reduce_every : Value<"reduce-every", "step|run", "when gradients are reduced over DP (step)", ofPlan>;
defm compute_dtype : Value<"compute-dtype", "f32|bf16", "of activations and matmuls (f32 on the host)", ofPlan>;
defm mask : Value<"mask", "model|documents", "documents restricts the model's mask to each document (model)", ofPlan>;
defm optimizer : Value<"optimizer", "adamw|sgd", "what updates the parameters (adamw)", ofPlan>;
defm tp_overlap : Value<"tp-overlap", "none|bulk|ring", "beside collectives of tensor parallelism: bulk: a matmul that "
                        "does not depend on it; ring: matmuls in steps around the ranks (none)", ofPlan>;
defm freeze : Value<"freeze", "REGEX", "parameters whose name matches are not trained", ofTrained>;
defm attention : Value<"attention", "generated|wgmma|cudnn|auto", "who makes the attention kernels: generated by mma.sync, by wgmma, or cuDNN (auto: generated)", ofPlan>;
defm communication_sms : Value<"communication-sms", "N", "multiprocessors of a GPU that matmuls leave to NCCL, whose "
                               "communicators take no more (0)", ofPlan>;
defm order : Value<"order", "AXIS,..", "axes of rank numbers, innermost first (tp,cp,pp,dp; plan: by their traffic)", ofPlan>;

// What is planned for.
defm cluster : Value<"cluster", "FILE.yaml", "the cluster's description (plan: required; else the axes are placed on it, and NCCL is set up for it)", ofPlaced>;
defm gpus : Value<"gpus", "N", "GPUs to plan for (required without --plan)", ofProblem>;
defm tokens_per_step : Value<"tokens-per-step", "T", "in place of --global-batch: about so many tokens, such as 16M", ofProblem>;
defm document_lengths : Value<"document-lengths", "MEAN[,DEVIATION]|FILE", "with --mask=documents: mean and standard "
                              "deviation of the documents' lengths in tokens, or a file with a length a line", ofProblem>;
defm tokens : Value<"tokens", "T", "tokens of the whole run, such as 15.6T: days and GPU hours", ofProblem>;

// What is measured.
defm cores : Value<"cores", "N", "cores that ranks share (all of this machine)", ofCalibration>;
defm ranks : Value<"ranks", "N", "ranks of the largest group whose collectives are measured (8)", ofCalibration>;
defm backend : Value<"backend", "inproc|mpi", "whose collectives plans for the file are priced with (inproc)", ofCalibration>;
defm turns : Value<"turns", "N", "times that everything is measured; the best counts (20)", ofCalibration>;
defm deadline : Value<"deadline", "SECONDS", "for each program that measures (120)", ofCalibration>;

// The program.
defm task : Value<"task", "train|forward", "what the program does (required)", ofProgram>;
defm target : Value<"target", "host|cuda", "what it runs on (host)", ofProgram>;
defm host_cpu : Value<"host-cpu", "NAME", "the CPU to compile for (this one)", ofProgram>;
defm print_after : Value<"print-after", "PHASE", "print to standard error what this phase hands on (see below)", ofProgram>;
def timing : Switch<"timing", "print the seconds of each phase to standard error", ofProgram>;

// What is written.
defm emit : Value<"emit", "mlir|llvm|ptx|cubin|obj|exe", "what OUT is (exe); ptx and cubin: a folder of kernels", ofCompile>;
defm stop_after : Value<"stop-after", "PHASE", "end with this phase; OUT is what it hands on (see below)", ofCompile>;
def json : Switch<"json", "print the report as JSON", ofCheck>;
defm top : Value<"top", "K", "plans to show (10)", ofPlanned>;
def pareto : Switch<"pareto", "also the fastest plans within less and less memory", ofPlanned>;
def explain : Switch<"explain", "compare the best plan part by part with the second", ofPlanned>;
def explain_with : Joined<["--"], "explain=">, MetaVarName<"LAYOUT">, Visibility<[PlanCommand]>, Group<outputGroup>,
                   HelpText<"the same with a plan file, or with the best of other choices (tp=4,order=tp,dp,pp,cp)">;
defm trace : Value<"trace", "FILE.json", "write a step of one pipeline of the best plan for Perfetto", ofPlanned>;
def report_page : Joined<["--"], "report=">, MetaVarName<"FILE.html">, Visibility<[PlanCommand]>, Group<outputGroup>,
                  HelpText<"write one page with everything, drawings too">;
defm flops_count : Value<"flops-count", "causal|full|hardware", "FLOPs of TFLOP/s (causal)", ofPlanned>;
def no_raise : Switch<"no-raise", "write the program as the front end reads it, before raising", ofImport>;
def report : Switch<"report", "print what was imported (parameters, ties, symbolic sizes) to standard error", ofImport>;
def o : Separate<["-"], "o">, MetaVarName<"OUT">,
        HelpText<"where to write; text goes to standard output without it">,
        Visibility<[ImportCommand, CompileCommand, CalibrateCommand]>, Group<outputGroup>;
def o_joined : Joined<["-"], "o=">, Alias<o>, Visibility<[ImportCommand, CompileCommand, CalibrateCommand]>;
def help : Switch<"help", "print this", ofAll>;
def h : Flag<["-"], "h">, Alias<help>, Visibility<kModelReaders # [CalibrateCommand]>;
