// The rules are PyTorch's: elementwise operations convert, most others do not.
// May include: graph.
// Invariant: an operation in no list follows the rule of its kind of OpDef.
#include "python/out_rules.h"

#include <algorithm>
#include <array>

#include "graph/inplace.h"

namespace clew::python {

namespace {

// Not elementwise, but results are converted.
constexpr auto converting = std::to_array<std::string_view>(
    {"addr",         "bernoulli", "cat",         "column_stack", "concat", "concatenate",
     "cumprod",      "cumsum",    "dstack",      "ger",          "hstack", "kron",
     "ldexp",        "logit",     "logsumexp",   "max",          "mean",   "min",
     "multigammaln", "mvlgamma",  "nanmean",     "nansum",       "outer",  "polygamma",
     "prod",         "row_stack", "stack",       "std",          "sum",    "var",
     "vstack",       "logaddexp", "true_divide", "div",          "divide"});
// Elementwise, but results are not converted.
constexpr auto plain = std::to_array<std::string_view>(
    {"abs",        "absolute",   "bitwise_not", "ceil",     "conj_physical", "fix",      "floor",
     "frac",       "hardshrink", "heaviside",   "isneginf", "isposinf",      "neg",      "negative",
     "logsigmoid", "round",      "sgn",         "sign",     "signbit",       "softplus", "trunc"});
// These operations read their inputs while they write, so out must not be an input or share memory
// with one.
constexpr auto apart = std::to_array<std::string_view>(
    {"aminmax",        "cat",      "column_stack", "concat",        "concatenate", "dstack",
     "gather",         "hstack",   "max",          "masked_select", "min",         "mode",
     "index_select",   "kthvalue", "nonzero",      "row_stack",     "stack",       "take",
     "take_along_dim", "vstack"});
// May be given an input itself, but no other tensor that shares memory with one.
constexpr auto aligned = std::to_array<std::string_view>(
    {"addmm",   "addr",        "baddbmm",        "clamp",      "clip",  "cumprod",
     "cumsum",  "ger",         "index_add",      "index_copy", "kron",  "logcumsumexp",
     "median",  "msort",       "nan_to_num",     "nanmedian",  "outer", "renorm",
     "scatter", "scatter_add", "scatter_reduce", "sort",       "topk",  "where"});

template <size_t n> bool names(const std::array<std::string_view, n>& list, const OpDef& op) {
  std::string_view name = op_name(op);
  name = name.substr(name.rfind('.') + 1);
  return std::find(list.begin(), list.end(), name) != list.end();
}
bool is_private(const OpDef& op) { return op_name(op).starts_with('_'); }

}  // namespace

bool needs_own_dtype(const OpDef& op) {
  if (is_private(op)) return false;  // the function around it decides
  return op.kind == OpKind::Elementwise ? names(plain, op) : !names(converting, op);
}

void check_out_memory(const OpDef& op, std::span<const Tensor> in, const Tensor& out) {
  // max(input, other) is elementwise: AMSGrad writes max(a, b, out=a).
  const bool pairs = op.kind == OpKind::Composite && in.size() == 2 &&
                     (op_name(op) == "max" || op_name(op) == "min");
  const bool elementwise = op.kind == OpKind::Elementwise || pairs;
  for (const Tensor& t : in) {
    if (!t.defined() || t->storage != out->storage) continue;
    const Overlap how = overlap(out, t);
    const bool refused = how == Overlap::partly || how == Overlap::whole;
    if (!refused) continue;
    if ((names(apart, op) && !pairs) ||
        (how == Overlap::partly && (elementwise || names(aligned, op))))
      fail_overlap(op_name(op));
  }
}

}  // namespace clew::python
