// vmap: tensors that stand for one sample of many, and how ops run on all samples at once.
// May include: graph.
// Invariant: what is recorded is recorded on the physical tensors; no node ever holds a batched one
// as its own output.
#pragma once
#include <functional>

#include "graph/node.h"

namespace clew {

// A batched tensor shows the sizes of one sample; `base` is the physical tensor, whose first dims
// are the open vmap levels that `view_version` has bits for, outermost first. `output_nr` is the
// serial number of its innermost vmap, by which a tensor that escaped from its vmap is noticed.

enum class Randomness : uint8_t { error, same, different };

struct VmapLevel {
  int64_t size;
  Randomness randomness;
  uint32_t serial;
};
constexpr int max_vmap_levels = 32;
int vmap_depth();
// Opens a level and returns its number.
int enter_vmap(int64_t size, Randomness randomness);
void exit_vmap();
const VmapLevel& vmap_level(int level);

inline bool is_batched(const Tensor& t) { return t.defined() && (t->flags & flag_batched); }
inline uint32_t levels_of(const Tensor& t) { return is_batched(t) ? t->view_version : 0; }
uint32_t levels_of(std::span<const Tensor> in);
// The tensor with all samples; t itself when it is not batched.
Tensor physical(const Tensor& t);
// `value` with its first dims, one for each bit of `levels`, hidden; value itself for no levels.
Tensor make_batched(const Tensor& value, uint32_t levels);
// Hides dim `dim` of t as `level`; t may be batched at other levels.
Tensor add_level(const Tensor& t, int dim, int level);
// Shows `level` as dim 0; t is expanded when it is not batched there.
Tensor remove_level(const Tensor& t, int level);
// Raises when a batched tensor outlived its vmap.
void check_alive(const Tensor& t);
// The physical tensor with a leading dim for every level of `levels` (a superset of its own): of
// size 1 where t has no such level, or of full size with `expanded`.
Tensor physical_at(const Tensor& t, uint32_t levels, bool expanded);
Dims level_sizes(uint32_t levels);

// One call of an op on batched tensors, as its rule sees it.
struct Batch {
  const OpDef& op;
  std::span<const Tensor> in;  // one sample each
  const void* attrs;
  uint32_t levels;  // of all inputs together
  Dims lead;        // their sizes
  int k() const { return lead.size(); }
  bool batched(int i) const { return is_batched(in[static_cast<size_t>(i)]); }
  Tensor value(int i) const { return physical_at(in[static_cast<size_t>(i)], levels, false); }
  Tensor full(int i) const { return physical_at(in[static_cast<size_t>(i)], levels, true); }
  template <class A> const A& as() const { return *static_cast<const A*>(attrs); }
};

// Runs an op of which an input is batched (or that draws random numbers inside vmap); outs are
// batched.
void apply_batched(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs);
void apply_batched_inplace(const OpDef& op, std::span<const Tensor> in, const void* attrs);
// Raises when `self`, which `name` writes into, lacks one of `levels`.
void require_room(const Tensor& self, uint32_t levels, std::string_view name);
// dst[...] = src where either is batched.
void copy_batched(const Tensor& dst, const Tensor& src);
// Calls f with one sample of every tensor after the other and stacks what it returns.
void for_each_sample(std::span<const Tensor> in, uint32_t levels, Tensors& outs,
                     const std::function<void(std::span<const Tensor>, Tensors&)>& f);
// Whether op draws random numbers: it has a Generator among its attributes.
bool is_random(const OpDef& op);
// The levels that a random draw of a tensor batched at `own` has; raises where drawing is an error.
uint32_t random_levels(std::string_view name, uint32_t own);
// Whether all samples share one draw: no open level has randomness='different'.
bool same_draws();

}  // namespace clew
