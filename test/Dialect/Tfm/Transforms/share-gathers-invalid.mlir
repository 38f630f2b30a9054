// RUN: %drover-opt %s --verify-diagnostics --tfm-share-gathers

// expected-error@+1 {{expects a function @microbatch}}
module {
}
