//===- SameAbi.h - declarations of one C function ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_SAMEABI_H
#define DROVER_UNITTESTS_RUNTIME_SAMEABI_H

#include <type_traits>

namespace drover::rt::test {

/// Passed in the same registers, or on the stack at the same size.
template <typename A, typename B> constexpr bool samePassing() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>)
    return std::is_void_v<A> && std::is_void_v<B>;
  else
    return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B> && std::is_class_v<A> == std::is_class_v<B>;
}

template <typename A, typename B> struct Functions : std::false_type {};
template <typename A, typename... As, typename B, typename... Bs> struct Functions<A (*)(As...), B (*)(Bs...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(As) == sizeof...(Bs))
      return samePassing<A, B>() && (samePassing<As, Bs>() && ...);
    else
      return false;
  }();
};

/// Whether two declarations of a function can be called alike.
template <typename A, typename B> constexpr bool sameAbi() { return Functions<A, B>::value; }

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_SAMEABI_H
