// Initial weights, drawn as PyTorch draws them.
#pragma once

#include "autograd/tensor.h"

namespace prenorm::nn {

// Uniform in (-b, b), b = 1 / sqrt(fan_in): PyTorch's default for Linear's weight and bias.
Tensor linear_uniform(const Shape& shape, std::int64_t fan_in);

// Fills `weight` [out, in] uniformly from (-b, b), b = gain * sqrt(6 / (in + out)) (Glorot, Bengio 2010, eq. 16).
void xavier_uniform_(const Tensor& weight, double gain = 1);

}  // namespace prenorm::nn
