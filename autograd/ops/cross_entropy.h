// What the losses over class ids share: checks, and what becomes of the losses of the rows.
#pragma once

#include <string_view>

#include "autograd/ops.h"

namespace prenorm {

// Throws unless x [..., C], target (int64) [...] and the options fit each other. The ids are not looked at.
void check_class_loss(std::string_view op, const Tensor& x, const Tensor& target, const CrossEntropyOptions& options);

// The number of rows that count: those whose target is not ignored.
std::int64_t rows_that_count(const Tensor& target, const CrossEntropyOptions& options);

// From the losses of the rows [...], 0 where ignored, to the result. Not recorded.
Tensor reduce_rows(const Tensor& rows, const Tensor& target, const CrossEntropyOptions& options);

// The factor that each row's loss has in the result, [..., 1]: 0 where ignored, else 1, or 1 / rows_that_count for
// mean.
Tensor row_factors(const Tensor& target, const CrossEntropyOptions& options, DType dtype);

// q [..., C]: (1 - s) at the target, plus s / C everywhere. Rows whose target is no class have s / C alone.
Tensor target_distribution(const Tensor& target, std::int64_t classes, double smoothing, DType dtype);

}  // namespace prenorm
