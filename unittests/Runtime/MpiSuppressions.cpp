//===- MpiSuppressions.cpp - sanitizers and libmpi ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// libmpi and its plugins are not instrumented: what sanitizers say of them is not ours. For programs that tests start
// under mpirun.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" const char *__tsan_default_suppressions() {
  return "called_from_lib:libmpi.so\ncalled_from_lib:libopen-pal.so\ncalled_from_lib:libopen-rte.so\n"
         "race:libmpi.so\nrace:libopen-pal.so\nrace:libopen-rte.so\nrace:mca_\nrace:libpmix.so\nrace:libevent\n"
         "called_from_lib:libpmix.so\ncalled_from_lib:libevent_core-2.1.so\nthread:libopen-pal.so\nsignal:*\n"
         "deadlock:mca_\ndeadlock:libopen-pal\nmutex:mca_\nmutex:libopen-pal\nmutex:libevent\nmutex:libpmix\n"
         "mutex:libmpi\n";
}
#endif
#endif
