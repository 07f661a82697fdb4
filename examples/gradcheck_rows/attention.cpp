#include "nn/attention.h"

#include "autograd/ops.h"
#include "gradcheck_rows/rows.h"

namespace prenorm::gradcheck_rows {
namespace {

void embedding_cases(Cases& c) {
  const auto look_up = [](const Tensor& ids) { return [ids](const Tensors& in) { return embedding(ids, in[0]); }; };
  const Tensor repeated = Tensor::of({3, 0, 3, 3}, {.dtype = int64});
  c.check(look_up(repeated), {{"weight", c.normal({5, 3})}});
  c.check(look_up(c.ids({2, 3}, 4)), {{"weight", c.normal({4, 2}, Layout::transposed)}});
  c.check(look_up(c.ids({2, 1, 2}, 3)), {{"weight", c.normal({3, 19}, Layout::gaps)}});
  c.check(look_up(c.ids({}, 3)), {{"weight", c.normal({3, 2})}});
  c.check_empty(look_up(c.ids({0}, 3)), {{"weight", c.normal({3, 2})}});
  // Two lookups add up in one gradient.
  c.check(
      [=](const Tensors& in) {
        return Tensors{embedding(repeated, in[0]), embedding(repeated, in[0] * in[0])};
      },
      {{"weight", c.normal({4, 2})}});
}

struct Sizes {
  Shape lead_q, lead_k, lead_v;
  std::int64_t Tq, Tk, D, Dv;
};

const std::vector<Sizes>& sizes() {
  static const std::vector<Sizes> list{
      {{}, {}, {}, 3, 3, 2, 2},
      {{2}, {2}, {2}, 4, 4, 3, 5},
      {{2, 2}, {2, 2}, {2, 2}, 3, 3, 4, 4},
      {{}, {}, {}, 1, 1, 2, 3},
  };
  return list;
}

Shape matrix(Shape lead, std::int64_t rows, std::int64_t columns) {
  lead.push_back(rows);
  lead.push_back(columns);
  return lead;
}

// Of q, k and v in these sizes, `mask` broadcasts to the scores.
void check_attention(Cases& c, const Sizes& s, const Tensor& mask, const AttentionOptions& options,
                     Layout layout = Layout::dense) {
  c.check([=](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], mask, options).y; },
          {{"q", c.normal(matrix(s.lead_q, s.Tq, s.D), layout)},
           {"k", c.normal(matrix(s.lead_k, s.Tk, s.D), layout)},
           {"v", c.normal(matrix(s.lead_v, s.Tk, s.Dv), layout)}});
}

MakeCases attention_cases(const AttentionOptions& options) {
  return [=](Cases& c) {
    for (const Sizes& s : sizes()) check_attention(c, s, {}, options);
    check_attention(c, sizes()[1], {}, options, Layout::transposed);
    check_attention(c, sizes()[2], {}, options, Layout::gaps);
  };
}

// Every query sees something.
MakeCases masked_attention(const AttentionOptions& options) {
  return [=](Cases& c) {
    for (const Sizes& s : sizes()) {
      Tensor mask = c.mask({s.Tq, s.Tk});
      copy_(slice(mask, 1, 0, 1), ones({s.Tq, 1}, boolean));
      check_attention(c, s, mask, options);
    }
    check_attention(c, sizes()[1], Tensor::of(std::vector<bool>{true, true, false, true}, {1, 4}, {.dtype = boolean}),
                    options, Layout::transposed);
  };
}

// The second query sees nothing.
MakeCases blind_row(double masked_score) {
  return [=](Cases& c) {
    const Tensor mask = Tensor::of(std::vector<bool>{true, false, true, false, false, false, true, true, true}, {3, 3},
                                   {.dtype = boolean});
    check_attention(c, sizes()[0], mask, {.masked_score = masked_score});
    check_attention(c, sizes()[2], mask, {.masked_score = masked_score});
  };
}

void cross_attention(Cases& c) {
  check_attention(c, {{}, {}, {}, 2, 4, 3, 2}, {}, {});
  check_attention(c, {{2}, {2}, {2}, 1, 3, 2, 2}, c.mask({1, 3}), {}, Layout::transposed);
  check_attention(c, {{2, 1}, {3}, {1, 1}, 2, 3, 2, 2}, {}, {});  // leading dimensions broadcast
}

void same_tensor(Cases& c) {
  c.check([](const Tensors& in) { return scaled_dot_product_attention(in[0], in[0], in[0]).y; },
          {{"q, k and v", c.normal({3, 2})}});
}

MakeCases packed(std::int64_t heads) {
  return [heads](Cases& c) {
    const GradcheckFunction f([heads](const Tensors& in) { return causal_attention_packed(in[0], heads); });
    c.check(f, {{"qkv", c.normal({2, 4, 3 * heads * 3})}});
    c.check(f, {{"qkv", c.normal({1, 1, 3 * heads * 2})}});
    c.check(f, {{"qkv", c.normal({2, 3, 3 * heads * 2}, Layout::transposed)}});
    c.check(f, {{"qkv", c.normal({1, 19, 3 * heads * 5}, Layout::gaps)}});
    c.check(f, {{"qkv", c.normal({1, 130, 3 * heads * 2})}});  // longer than what the weights are kept for
  };
}

void attention_with_dropout(Cases& c) {
  const Tensor mask = nn::subsequent_mask(3);
  c.check(seeded([=](const Tensors& in) { return nn::attention(in[0], in[1], in[2], mask, 0.4).y; }),
          {{"q", c.normal({2, 3, 2})}, {"k", c.normal({2, 3, 2})}, {"v", c.normal({2, 3, 2})}});
}

}  // namespace

Rows attention_rows() {
  const std::string file = ops("attention.cpp"), name = "scaled_dot_product_attention";
  return {
      {"embedding", "", ops("embedding.cpp"), embedding_cases},
      {name, "plain", file, attention_cases({})},
      {name, "scale", file, attention_cases({.scale = 0.9})},
      {name, "causal", file, attention_cases({.causal = true})},
      {name, "mask, -inf", file, masked_attention({})},
      {name, "mask, -1e9", file, masked_attention({.masked_score = -1e9})},
      {name, "mask, causal", file, masked_attention({.causal = true})},
      {name, "blind row, -inf", file, blind_row(-INFINITY)},
      {name, "blind row, -1e9", file, blind_row(-1e9)},
      {name, "cross", file, cross_attention},
      {name, "one tensor", file, same_tensor},
      {"causal_attention_packed", "1 head", ops("causal_attention.cpp"), packed(1)},
      {"causal_attention_packed", "3 heads", ops("causal_attention.cpp"), packed(3)},
      {"attention", "dropout", layers("attention.cpp"), attention_with_dropout},
  };
}

}  // namespace prenorm::gradcheck_rows
