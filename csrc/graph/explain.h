// What error messages say of the tensors, lines and modules that are involved.
// May include: graph.
// Invariant: text is made only for an error; making it raises no other error.
#pragma once
#include "graph/node.h"

namespace clew {

// An error with lines that are shown last: where operands came from, what to do.
class Explained final : public Error {
 public:
  std::string details;
  Explained(const Error& e, std::string lines) : Error(e), details(std::move(lines)) {}
};

// "the parameter fc1.weight of Net, float32[4, 4]"; "`h`, float32[3]" where the line that made it
// names it; "float32[3]" where nothing is known.
std::string describe_tensor(const Tensor& t, const Node* maker);

// A saved tensor was written since: `maker` is the node whose output `nr` it is, if any.
[[noreturn]] void fail_written(const Node& saver, const Tensor& t, uint32_t version, bool is_output,
                               const Node* maker, uint32_t nr);
// What n saved was freed by an earlier backward. `root` is the node where this one began; null
// outside of backward.
[[noreturn]] void fail_consumed(const Node& n, const Node* root = nullptr);
// t may not be written, since it or its base is a leaf.
[[noreturn]] void fail_leaf_write(const char* op, const Tensor& leaf, bool through_view);

// t is a view that was made while nothing was recorded.
[[noreturn]] void fail_unrecorded_view_write(const char* op, const Tensor& t);

// The continuation of a message about t, which does not require grad.
std::string why_no_grad(const Tensor& t);

// In a handler of e, an operation's error: throws it again, with where the operands came from.
[[noreturn]] void rethrow_with_operands(const Error& e, std::span<const Tensor> in);

// What of backward was going on at a node.
enum class Moment : uint8_t { rule, tensor_hook, node_hook };
// "in the backward of MulBackward0, made at ..."; empty where nothing is known of n.
std::string describe_moment(const Node& n, Moment moment);
// "gradient 1 is that of `scale`; ..."; empty but for custom Functions.
std::string describe_gradient(const Node& n, int64_t index);

// Says where the node came from whose gradient failed: in an error of ours, or as a note of the
// Python exception that is set.
void locate(Error& e, const Node& n, Moment moment);
void locate_python_error(const Node& n, Moment moment);

}  // namespace clew
