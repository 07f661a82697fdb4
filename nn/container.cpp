#include "nn/container.h"

namespace prenorm::nn {

ModuleList clones(const Module& module, std::int64_t N) {
  check(N >= 0, "clones: their number is not negative, got ", N);
  ModuleList list;
  for (std::int64_t i = 0; i < N; ++i) list.push_back(module.clone());
  return list;
}

}  // namespace prenorm::nn
