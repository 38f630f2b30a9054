//===- CudnnAttention.cpp - attention by cuDNN ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/cudnn_attention.h"
#include <cstdlib>
#include <cudnn_frontend.h>
#include <map>
#include <tuple>

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;

#define DROVER_EXPORT extern "C" __attribute__((visibility("default")))

namespace cudnn_frontend {
void *cudnn_dlhandle = nullptr; // the frontend finds cuDNN's functions in it
}

namespace {

enum Uid : int64_t { Query = 1, Key, Value, Result, LogSumExp, Gradient, QueryGrad, KeyGrad, ValueGrad };

/// What tells one plan from another.
auto keyOf(const drover_attention &d, bool backward) {
  return std::make_tuple(
      backward, d.batch, d.queries, d.keys, d.heads, d.kv_heads, d.head_size, d.value_head_size, d.causal, d.scale,
      std::make_tuple(d.query_stride, d.key_stride, d.value_stride, d.result_stride, d.gradient_stride,
                      d.query_grad_stride, d.key_grad_stride, d.value_grad_stride));
}

/// Of [batch, length, heads * size] as [batch, heads, length, size].
Tensor_attributes &shape(Tensor_attributes &tensor, Uid uid, const drover_attention &d, int64_t length, int64_t heads,
                         int64_t size, int64_t rowStride) {
  if (rowStride % 8 != 0)
    throw std::runtime_error("rows of a tensor are " + std::to_string(rowStride) +
                             " elements apart, no multiple of 8; --attention=generated takes any");
  return tensor.set_uid(uid)
      .set_dim({d.batch, heads, length, size})
      .set_stride({length * rowStride, size, rowStride, 1})
      .set_data_type(fe::DataType_t::BFLOAT16);
}

Tensor_attributes &shapeSums(Tensor_attributes &tensor, const drover_attention &d) {
  return tensor.set_uid(LogSumExp)
      .set_dim({d.batch, d.heads, d.queries, 1})
      .set_stride({d.heads * d.queries, d.queries, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

template <typename Attributes> void setMask(Attributes &attributes, const drover_attention &d) {
  attributes.set_attn_scale(float(d.scale));
  if (d.causal == 1)
    attributes.set_causal_mask(true);
  else if (d.causal == 2)
    attributes.set_causal_mask_bottom_right(true);
}

/// `architecture`: of the device that the graph is for, 10 * major + minor; 0: the context's.
std::shared_ptr<fe::graph::Graph> describe(const drover_attention &d, bool backward, int architecture = 0) {
  auto graph = std::make_shared<fe::graph::Graph>();
  if (architecture) // before there are nodes, which take it over
    graph->set_sm_version(architecture);
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  auto input = [&](const char *name, Uid uid, int64_t length, int64_t heads, int64_t size, int64_t rowStride) {
    Tensor_attributes tensor;
    shape(tensor, uid, d, length, heads, size, rowStride).set_name(name);
    return graph->tensor(tensor);
  };
  Tensor query = input("query", Query, d.queries, d.heads, d.head_size, d.query_stride);
  Tensor key = input("key", Key, d.keys, d.kv_heads, d.head_size, d.key_stride);
  Tensor value = input("value", Value, d.keys, d.kv_heads, d.value_head_size, d.value_stride);
  if (!backward) {
    auto attributes = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
    setMask(attributes, d);
    auto [result, sums] = graph->sdpa(query, key, value, attributes);
    shape(*result, Result, d, d.queries, d.heads, d.value_head_size, d.result_stride).set_output(true);
    shapeSums(*sums, d).set_output(true);
    return graph;
  }
  Tensor result = input("result", Result, d.queries, d.heads, d.value_head_size, d.result_stride);
  Tensor gradient = input("gradient", Gradient, d.queries, d.heads, d.value_head_size, d.gradient_stride);
  Tensor_attributes sums;
  shapeSums(sums, d).set_name("log_sum_exp");
  // Equal runs are to be equal bit by bit.
  auto attributes = fe::graph::SDPA_backward_attributes().set_name("attention_grad").set_deterministic_algorithm(true);
  setMask(attributes, d);
  auto [dq, dk, dv] = graph->sdpa_backward(query, key, value, result, gradient, graph->tensor(sums), attributes);
  shape(*dq, QueryGrad, d, d.queries, d.heads, d.head_size, d.query_grad_stride).set_output(true);
  shape(*dk, KeyGrad, d, d.keys, d.kv_heads, d.head_size, d.key_grad_stride).set_output(true);
  shape(*dv, ValueGrad, d, d.keys, d.kv_heads, d.value_head_size, d.value_grad_stride).set_output(true);
  return graph;
}

/// Throws where a step of the frontend says that it failed.
void check(fe::error_t status, const char *what) {
  if (status.is_bad())
    throw std::runtime_error(std::string(what) + ": " + status.get_message());
}

/// `fn`, or what it throws as text.
template <typename Fn> const char *guarded(Fn &&fn) {
  static thread_local std::string message;
  try {
    fn();
    return nullptr;
  } catch (const std::exception &error) {
    message = error.what();
    return message.c_str();
  }
}

} // namespace

struct drover_cudnn {
  ~drover_cudnn() {
    plans.clear();
    if (handle)
      fe::detail::destroy_handle(handle);
  }

  fe::graph::Graph &planOf(const drover_attention &d, bool backward) {
    std::shared_ptr<fe::graph::Graph> &plan = plans[keyOf(d, backward)];
    if (plan)
      return *plan;
    auto made = describe(d, backward);
    check(made->validate(), "validate");
    check(made->build_operation_graph(handle), "build_operation_graph");
    check(made->create_execution_plans({fe::HeurMode_t::A}), "create_execution_plans");
    check(made->check_support(), "check_support");
    check(made->build_plans(), "build_plans");
    int64_t needed = 0, given = drover_cudnn_workspace(&d, backward);
    check(made->get_workspace_size(needed), "get_workspace_size");
    if (needed > given)
      throw std::runtime_error("the plan needs " + std::to_string(needed) + " bytes of workspace, and has " +
                               std::to_string(given) + "; --attention=generated needs less");
    plan = made;
    return *plan;
  }

  void run(const drover_attention &d, bool backward, void *stream, std::unordered_map<int64_t, void *> pointers,
           void *workspace) {
    if (!handle && fe::detail::create_handle(&handle) != CUDNN_STATUS_SUCCESS) {
      handle = nullptr;
      throw std::runtime_error("cudnnCreate failed");
    }
    if (fe::detail::set_stream(handle, static_cast<cudaStream_t>(stream)) != CUDNN_STATUS_SUCCESS)
      throw std::runtime_error("cudnnSetStream failed");
    // What a body cuts out of a tensor may start anywhere; cuDNN reads rows by 16 bytes.
    for (const auto &[uid, pointer] : pointers)
      if (reinterpret_cast<uintptr_t>(pointer) % 16 != 0)
        throw std::runtime_error("a tensor does not start at a multiple of 16 bytes; --attention=generated takes any");
    check(planOf(d, backward).execute(handle, pointers, workspace), "execute");
  }

  cudnnHandle_t handle = nullptr;
  std::map<decltype(keyOf({}, false)), std::shared_ptr<fe::graph::Graph>> plans;
};

DROVER_EXPORT const char *drover_cudnn_open(const char *library, drover_cudnn **opened) {
  return guarded([&] {
    const char *variable = std::getenv("DROVER_RT_LIBCUDNN");
    std::string name = library && *library ? library : variable && *variable ? variable : "libcudnn.so.9";
    if (!fe::cudnn_dlhandle)
      fe::cudnn_dlhandle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!fe::cudnn_dlhandle) {
      const char *reason = ::dlerror(), *path = std::getenv("LD_LIBRARY_PATH");
      throw std::runtime_error("cuDNN is not found: " + std::string(reason ? reason : name) +
                               "; install cuDNN 9 (the wheel nvidia-cudnn-cu13 has it), add its folder to "
                               "LD_LIBRARY_PATH (now " +
                               (path && *path ? path : "empty") + "), or name the file in DROVER_RT_LIBCUDNN");
    }
    *opened = new drover_cudnn;
  });
}

DROVER_EXPORT void drover_cudnn_close(drover_cudnn *self) { delete self; }

DROVER_EXPORT const char *drover_cudnn_validate(drover_cudnn *, const drover_attention *desc, int backward) {
  return guarded([&] { check(describe(*desc, backward, 90)->validate(), "validate"); });
}

/// The frontend's map has no const pointers; what is only read stays as it is.
static void *mutablePointer(const void *pointer) { return const_cast<void *>(pointer); }

DROVER_EXPORT const char *drover_cudnn_forward(drover_cudnn *self, const drover_attention *desc, void *stream,
                                               const void *query, const void *key, const void *value, void *result,
                                               void *log_sum_exp, void *workspace) {
  return guarded([&] {
    self->run(*desc, false, stream,
              {{Query, mutablePointer(query)},
               {Key, mutablePointer(key)},
               {Value, mutablePointer(value)},
               {Result, result},
               {LogSumExp, log_sum_exp}},
              workspace);
  });
}

DROVER_EXPORT const char *drover_cudnn_backward(drover_cudnn *self, const drover_attention *desc, void *stream,
                                                const void *query, const void *key, const void *value,
                                                const void *result, const void *log_sum_exp, const void *gradient,
                                                void *query_grad, void *key_grad, void *value_grad, void *workspace) {
  return guarded([&] {
    self->run(*desc, true, stream,
              {{Query, mutablePointer(query)},
               {Key, mutablePointer(key)},
               {Value, mutablePointer(value)},
               {Result, mutablePointer(result)},
               {LogSumExp, mutablePointer(log_sum_exp)},
               {Gradient, mutablePointer(gradient)},
               {QueryGrad, query_grad},
               {KeyGrad, key_grad},
               {ValueGrad, value_grad}},
              workspace);
  });
}
