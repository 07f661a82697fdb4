// How deep the gradient of a residual stack goes: the share of it that crossed k branches.
//
// Through x_(l+1) = x_l + F_l(x_l) the gradient comes down as g_l = g_(l+1) + J_l^T g_(l+1). Kept apart by the number
// of branches crossed (Veit, Wilber, Belongie 2016, "Residual Networks Behave Like Ensembles of Relatively Shallow
// Networks"), v_0 = g_L at the top and, at each residual sum on the way down,
//   v_k <- v_k + J_l^T v_(k-1)
// At the bottom the v_k add up to g_0. The share of k is <v_k, g_0> / <g_0, g_0>: shares add up to 1, and one is
// negative where those paths pull the other way.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/view/record.h"
#include "autograd/view/trace.h"

namespace prenorm::view {

struct Path {
  std::vector<std::int64_t> stream;  // the residual sums, from the input on
  std::vector<double> shares;        // at k, of the gradient that crossed k branches
  std::vector<double> norms;         // of v_k
  double sum = 0;                    // of the shares
};

// One a stream: residual sums in which each one's skip is the sum before, as it is or normalised (post-norm). By the
// recorded nodes' own backward, in the recorded dtype. Streams whose gradient is zero are left out.
std::vector<Path> find_paths(const Record& record, const Trace& trace);

}  // namespace prenorm::view
