// The backward engine: runs the nodes that gradients reach, latest first, and gathers gradients.
// May include: base, graph.
// Invariant: a node runs once per call, after all its consumers: these were made later, so that the
// latest node reached has none left. Nothing here recurses over the graph.
#include <unordered_map>

#include "graph/another_stack.h"
#include "graph/backward_calls.h"
#include "graph/captures.h"
#include "graph/deferral.h"
#include "graph/explain.h"
#include "graph/gather.h"
#include "graph/hooks.h"
#include "graph/node.h"
#include "graph/trace.h"
#include "graph/waiting.h"
#include "graph/watch.h"

namespace clew {

// One backward call.
struct GraphTask {
  // Gradients gathered for one node, and how many of its consumers have run.
  struct Scratch {
    uint32_t delivered = 0;
    std::vector<Tensor> grads;
  };

  BackwardArgs& args;
  Waiting reached;
  // Leaf accumulators run after all their consumers (known from the reference count), otherwise at
  // the end. They may be older than their consumers, and references from another graph count as
  // well.
  std::vector<Node*> leaves;
  Node* current = nullptr;
  Moment moment = Moment::rule;  // of the node that is being processed, when something fails
  std::unordered_map<Node*, Scratch>
      foreign;  // nodes whose own scratch another running backward uses
  Captures captures;
  Node** turn = nullptr;     // borrowed: shows other code which node runs
  int64_t ended_before = 0;  // for TraceNode

  static constexpr uint32_t few = 4;  // inputs, outputs

  explicit GraphTask(BackwardArgs& a) : args(a) {}
  ~GraphTask() {
    modes.disposable = nullptr;
    // What an exception left.
    if (current) forget(current);
    reached.for_each([&](Node* n) { forget(n); });
    for (Node* n : leaves) forget(n);
  }
  void forget(Node* n) {
    if (n->task != this) return;
    n->task = nullptr;
    n->grad_in = Tensor();
    n->staged.reset();
    for (uint32_t k = 1; n->more && k < n->output_count; ++k) n->gradient(k) = Tensor();
  }

  Tensor& slot(Node* n, uint32_t nr) {
    if (n->task == this) return n->gradient(nr);
    auto& list = foreign[n].grads;
    if (list.size() <= nr) list.resize(nr + 1);
    return list[nr];
  }

  // Registers n as a node that will get a gradient.
  void reach(Node* n) {
    // A node that was in use by another backward stays in the table after that backward has
    // finished with it, because its gradients so far are there.
    if (n->task == nullptr && (foreign.empty() || !foreign.count(n))) {
      n->task = this;
      n->delivered = 0;
    } else if (n->task == this || !foreign.try_emplace(n).second) {
      return;
    }
    if (n->is_accumulator) {
      leaves.push_back(n);
      return;
    }
    reached.push(n);
  }

  // A consumer of n has run; an accumulator may have waited for it as the last one.
  void count(Node* n) {
    if (n->task == this && ++n->delivered == n->refs && n->is_accumulator) reached.push(n);
  }

  // Adds into the buffer if it has no other owner; a shared buffer is not written to.
  static bool exclusive(const Tensor& s) {
    return !modes.grad && Py_REFCNT(reinterpret_cast<PyObject*>(s.get())) == 1 &&
           s->storage->seen_refs() == 1 && s.is_contiguous() && !s->grad_fn &&
           s->storage->resizable && !s.is_meta() && !(s->flags & flag_batched);
  }

  static bool other_edges(Node* n, uint32_t but) {
    for (uint32_t i = 0; i < n->edge_count; ++i)
      if (i != but && n->edges[i].fn) return true;
    return false;
  }

  // Adds the products that were gathered for n to its gradient.
  void multiply_staged(Node* n) {
    Staged& s = *n->staged;
    if (s.rows == 0) return;
    ended_before = 0;
    TraceSpan trace("gathered products");
    const OutMeta& meta = n->meta0;
    Tensor left = alias(s.left, Dims{s.rows, s.left.size(1)}, s.left.strides());
    Tensor right = alias(s.right, Dims{s.rows, s.right.size(1)}, s.right.strides());
    std::optional<Alone> alone;
    if (s.rows * left.size(1) * right.size(1) < Staged::shared_work) alone.emplace();
    s.rows = 0;
    const bool first = !n->grad_in;
    if (first)
      n->grad_in = empty(meta.sizes(), meta.dtype);
    else
      make_exclusive(n->grad_in, meta);
    Tensor into = n->grad_in;
    if (into.ndim() > 2) {  // stacks of matrices are one of more rows
      if (!into.is_contiguous()) {
        n->grad_in = empty(meta.sizes(), meta.dtype);
        copy_into(n->grad_in, into);
      }
      into = alias(n->grad_in, Dims{left.size(1), right.size(1)}, Dims{right.size(1), 1});
    }
    builtins.multiply_into(into, left, right, Scalar(first ? 0 : 1));
  }

  // Whether, by its reference count, n still expects gradients from other nodes than the one that
  // runs.
  static bool awaits_more(const Node* n) {
    uint32_t others = n->is_accumulator ? 0 : 1;  // the tensor that n made
    return n->refs > n->delivered + 1 + others;
  }

  // Adds n's rows to the buffer of factors that become one product; false if that does not apply.
  bool stage(Node* n, std::span<const Tensor> grads) {
    const Edge& e = n->edges[n->accumulated_input()];
    if (e.nr != 0 || e.fn->task != this || (!e.fn->staged && !awaits_more(e.fn))) return false;
    if (!e.fn->staged) e.fn->staged = std::make_unique<Staged>();
    if (e.fn->staged->rows > Staged::capacity - 16) multiply_staged(e.fn);
    return n->run_staged(grads, *e.fn->staged);
  }

  // Whether n may leave its input's gradient to run_into() or run_staged().
  static bool may_accumulate(Node* n, std::span<const Tensor> grads, uint32_t input) {
    if (modes.grad || (modes.intercept & ~intercept_trace) || !n->accumulates ||
        (n->extra && n->extra->post_hooks))
      return false;
    const Edge& e = n->edges[input];
    if (!e.fn) return false;
    const OutMeta& meta = e.fn->meta(e.nr);
    for (const Tensor& g : grads)
      if (g.defined() && (g.dtype() != meta.dtype || g.is_meta() || (g->flags & flag_batched)))
        return false;
    return true;
  }

  static void make_exclusive(Tensor& s, const OutMeta& meta) {
    if (exclusive(s)) return;
    Tensor own = empty(meta.sizes(), meta.dtype);
    if (is_sparse(s)) [[unlikely]] {
      fill_(own, Scalar(0));
      s = add_sparse(own, s);
      return;
    }
    copy_into(own, s);
    s = std::move(own);
  }

  // A buffer that n may add its input's gradient into; null when it must make a gradient itself.
  Tensor* buffer_for(Node* n, uint32_t input) {
    const Edge& e = n->edges[input];
    const OutMeta& meta = e.fn->meta(e.nr);
    Tensor& s = slot(e.fn, e.nr);
    if (!s.defined()) {
      if (!n->accumulates_part()) return nullptr;
      s = empty(meta.sizes(), meta.dtype);
      fill_(s, Scalar(0));
    } else {
      if (s.dtype() != meta.dtype || s.is_meta() || (s->flags & flag_batched)) return nullptr;
      make_exclusive(s, meta);
    }
    return &s;
  }

  static void add_to(Tensor& s, Tensor g) {
    if (!s.defined()) {
      s = std::move(g);
      return;
    }
    if (is_sparse(s) || is_sparse(g)) [[unlikely]]
      s = add_sparse(s, g);
    else if (exclusive(s) && s.dtype() == g.dtype() && !(g->flags & flag_batched))
      accumulate_into(s, g);
    else
      s = builtins.add(s, g);
  }

  // add_to(), and nan_watch looks at the sum.
  void add_up(Tensor& s, Tensor g) {
    if (!finite) return add_to(s, std::move(g));
    {
      const InterceptWithout quiet(looking);
      add_to(s, std::move(g));
    }
    finite = watch_sum(s);
  }

  void process(Node* n) {
    ended_before = 0;               // hooks may run
    TraceNode trace(ended_before);  // includes fitting and adding up its gradients
    Tensor single;
    std::vector<Tensor> many;
    std::span<Tensor> grads;
    uint32_t outputs = n->output_count;
    if (n->task == this && outputs == 1) {
      single = std::move(n->grad_in);
      grads = {&single, 1};
    } else {
      many.resize(outputs);
      for (uint32_t k = 0; k < outputs; ++k) many[k] = std::move(slot(n, k));
      grads = many;
    }
    // Nodes that no requested gradient passes through do not run, and their hooks do not either.
    const bool run = captures.lets_run(n), wanted = run || captures.at.count(n);
    bool any = false;
    for (Tensor& g : grads) any = any || (wanted && g.defined());
    if (n->is_accumulator && any) call_leaf_hooks(n, grads[0]);
    if (n->extra && any) {
      moment = Moment::tensor_hook;
      run_tensor_hooks(*n, grads);
    }
    if (captures.any) captures.take(args, n, grads);
    uint32_t edges = n->edge_count;
    Tensor few[4];
    std::vector<Tensor> more;
    std::span<Tensor> outs{few, edges};
    if (edges > 4) {
      more.resize(edges);
      outs = more;
    }
    moment = Moment::rule;
    if (run && any) {
      if (n->extra && n->extra->pre_hooks) {
        moment = Moment::node_hook;
        run_pre_hooks(*n, grads);
        moment = Moment::rule;
        any = n->python_object();  // a custom Function: gets zeros for gradients that hooks removed
        for (Tensor& g : grads) any = any || g;
      }
    }
    if (run && any) {
      if (n->consumed) fail_consumed(*n, args.roots[0].fn.get());
      // Gradients are computed in the dtypes of the forward pass; custom Functions, which are
      // Python code, see the caller's autocast region.
      AutocastMode cast(autocasts() && n->python_object());
      const uint64_t unwanted = captures.any ? captures.unwanted_inputs(n) : 0;
      trace.open_for(*n, unwanted);
      run_node(n, grads, outs.data(), unwanted);
      modes.disposable = nullptr;
      if (modes.intercept & looking) watch(n, grads, outs);
      if (n->extra && n->extra->post_hooks) {
        moment = Moment::node_hook;
        run_post_hooks(*n, outs, grads);
        moment = Moment::rule;
      }
      if (!args.keep_graph) n->release_saved();
    }
    for (Tensor& g : grads) g = Tensor();
    for (uint32_t i = 0; i < edges; ++i) {
      Edge e = n->edges[i];
      if (!e.fn) continue;
      if (outs[i].defined()) {
        reach(e.fn);
        add_up(slot(e.fn, e.nr), fit_gradient(e, std::move(outs[i]), *n, i));
      }
      count(e.fn);
    }
    if (n->task == this)
      n->task = nullptr;
    else
      foreign.erase(n);
  }

  static void fetch(const Node* n) {
    auto* at = reinterpret_cast<const char*>(n);
    for (int line = 0; line < 4; ++line) fetch_line(at + line * line_bytes);
  }
  // Prefetches while n runs: what the nodes of its inputs saved, and the nodes after those, which
  // the next call of this function reads.
  static void fetch_ahead(const Node* n) {
    for (uint32_t i = 0; i < n->edge_count; ++i) {
      const Node* fn = n->edges[i].fn;
      if (!fn) continue;
      const Saved* saved = fn->saved_behind_edges();
      for (uint32_t k = 0; k < fn->saved_count; ++k) saved[k].fetch();
      for (uint32_t k = 0; k < fn->edge_count; ++k)
        if (const Node* after = fn->edges[k].fn) fetch(after);
    }
  }

  // process() of a node of at most so many outputs and inputs, without hooks, when no gradient is
  // captured.
  template <uint32_t most_outputs, uint32_t most_inputs> void process_plain(Node* n) {
    TraceNode trace(ended_before);
    Tensor grads[most_outputs];
    const uint32_t outputs = most_outputs == 1 ? 1 : n->output_count;
    for (uint32_t k = 0; k < outputs; ++k) grads[k] = std::move(n->gradient(k));
    if (n->consumed) fail_consumed(*n, args.roots[0].fn.get());
    if (n->is_accumulator) call_leaf_hooks(n, grads[0]);
    fetch_ahead(n);
    trace.open_for(*n, 0);
    Tensor outs[most_inputs];
    run_node(n, {grads, outputs}, outs, 0);
    modes.disposable = nullptr;
    if (modes.intercept & looking) [[unlikely]]
      watch(n, {grads, outputs}, {outs, n->edge_count});
    if (!args.keep_graph) n->release_saved();
    for (uint32_t k = 0; k < outputs; ++k) grads[k] = Tensor();
    for (uint32_t i = 0; i < n->edge_count; ++i) {
      Edge e = n->edges[i];
      if (!e.fn) continue;
      if (outs[i]) {
        const OutMeta& meta = e.fn->meta(e.nr);
        if (outs[i]->dtype != meta.dtype ||
            (outs[i]->shape != meta.shape.get() && outs[i].sizes() != meta.sizes())) [[unlikely]] {
          outs[i] = fit_gradient(e, std::move(outs[i]), *n, i);
          if (finite) finite = all_finite({&outs[i], 1});
        }
        reach(e.fn);
        if (Tensor& s = slot(e.fn, e.nr); s)
          add_up(s, std::move(outs[i]));
        else
          s = std::move(outs[i]);
      }
      count(e.fn);
    }
    n->task = nullptr;
  }

  void call_leaf_hooks(Node* n, Tensor& grad) {
    auto& leaf = static_cast<AccumulateGrad&>(*n).variable;
    if (!leaf->extra || !leaf->extra->hooks) return;
    ended_before = 0;
    moment = Moment::tensor_hook;
    run_leaf_hooks(leaf, grad);
    moment = Moment::rule;
  }

  struct RestoreSkip {
    Skip before = skip;
    ~RestoreSkip() { skip = before; }
  };
  // Has n add to the buffers of all of its inputs, or runs it.
  void run_into_all(Node* n, std::span<const Tensor> grads, Tensor* outs, uint64_t unwanted) {
    uint64_t done = unwanted;
    bool left = false;
    for (uint32_t i = 0; i < n->edge_count; ++i) {
      if (!n->edges[i].fn || (i < 64 && (unwanted >> i & 1) != 0)) continue;
      Tensor* into = nullptr;
      if (i < 64 && may_accumulate(n, grads, i)) {
        reach(n->edges[i].fn);
        into = buffer_for(n, i);
      }
      if (!into) {
        left = true;
        continue;
      }
      settle_before_write(*into);
      n->run_into_input(grads, *into, i);
      done |= uint64_t{1} << i;
    }
    if (!left) return;
    const RestoreSkip restore;
    skip = {n, done};
    n->run(grads, outs);
  }
  // Runs n, or has it add to the buffer of one of its inputs; `unwanted` ones are left out already.
  void run_rule(Node* n, std::span<const Tensor> grads, Tensor* outs, uint64_t unwanted) {
    if (n->accumulates && n->accumulates_all()) return run_into_all(n, grads, outs, unwanted);
    const uint32_t input = n->accumulated_input();
    if (!n->accumulates || (unwanted >> input & 1) != 0 || !may_accumulate(n, grads, input))
      return n->run(grads, outs);
    reach(n->edges[input].fn);
    if (!stage(n, grads)) {
      Tensor* into = buffer_for(n, input);
      if (!into) return n->run(grads, outs);
      settle_before_write(*into);
      n->run_into(grads, *into);
    }
    if (!other_edges(n, input)) return;
    const RestoreSkip restore;
    skip = {n, unwanted | uint64_t{1} << input};
    n->run(grads, outs);
  }
  static constexpr uint8_t looking = intercept_watch | intercept_anomaly;
  // nan_watch: every gradient so far is known to be finite.
  bool finite = false;
  // Whether the rule that ran last may have written over its incoming gradient.
  bool written_over = false;
  SmallGradient gradient_before;
  void watch(Node* n, std::span<const Tensor> grads, std::span<const Tensor> made) {
    finite &= watch_gradients(*n, grads, made,
                              std::exchange(written_over, false) ? &gradient_before : nullptr);
  }
  // Runs a rule and checks its gradients as a whole, without checking the operations inside it. The
  // rule may write over its incoming gradients unless they must be compared with the result.
  void run_watched(Node* n, std::span<const Tensor> grads, Tensor* outs, uint64_t unwanted) {
    std::vector<Tensor> held;
    if (modes.intercept & intercept_watch) {
      written_over = finite && !n->extra && gradient_before.keep(grads);
      if (!written_over) held.assign(grads.begin(), grads.end());
    }
    const InterceptWithout quiet(looking);
    const RestoreSkip restore;
    if (unwanted) skip = {n, unwanted};
    n->run(grads, outs);
  }
  void run_node(Node* n, std::span<const Tensor> grads, Tensor* outs, uint64_t unwanted) {
    struct Running {
      Node* before = modes.running;
      explicit Running(Node* now) { modes.running = now; }
      ~Running() { modes.running = before; }
    } running(n);
    std::vector<Tensor> own;
    if (n->packed) [[unlikely]] {
      own = out_of_reach(grads);
      grads = own;
    }
    if ((modes.intercept & looking) && !n->python_object()) [[unlikely]]
      return run_watched(n, grads, outs, unwanted);
    if (unwanted == 0) [[likely]]
      return run_rule(n, grads, outs, 0);
    const RestoreSkip restore;
    skip = {n, unwanted};
    run_rule(n, grads, outs, unwanted);
  }

  void run() {
    GradMode mode(args.create_graph);
    const InterceptWithout unobserved(intercept_observe);
    // Operations of hooks that are not recorded are unrecorded because of this backward, not
    // because of the program.
    struct Unrecorded {
      Origin* before = std::exchange(modes.unrecorded_since, nullptr);
      ~Unrecorded() {
        if (Origin* inner = std::exchange(modes.unrecorded_since, before)) inner->decref();
      }
    } unrecorded;
    captures.begin(args);
    finite = (modes.intercept & intercept_watch) && all_finite(args.grads);
    for (size_t i = 0; i < args.roots.size(); ++i) {
      Node* n = args.roots[i].fn.get();
      reach(n);
      add_to(slot(n, args.roots[i].nr), args.grads[i]);
    }
    const Deferred deferred;
    while ((current = reached.pop())) {
      step(current);
      if (stretch.look_due) [[unlikely]]
        ended_before = 0;
      look_for_signals();
    }
    // By index: hooks may add to them.
    for (size_t i = 0; i < leaves.size(); ++i) {
      current = leaves[i];
      if (current->task == this || foreign.count(current)) step(current);
    }
    leaves.clear();
    deferred.end();
  }

  // Calls of a gradient rule wait if the node was made where calls wait.
  class Deferred {
    bool before_ = modes.deferred;

   public:
    ~Deferred() { modes.deferred = before_; }
    void end() const {
      if (modes.deferred == before_) return;
      modes.deferred = before_;
      deferral.run_own();
    }
  };

  // The roots, which args hold, keep every node alive.
  void step(Node* n) try {
    *turn = n;
    modes.deferred |= n->deferred;
    if (n->staged && n->task == this) {
      multiply_staged(n);
      n->staged.reset();
    }
    if (n->extra || captures.any || (modes.intercept & ~(looking | intercept_trace)) ||
        n->task != this || n->output_count > few || n->edge_count > few)
      process(n);
    else if (n->output_count == 1 && n->edge_count <= 2)
      process_plain<1, 2>(n);
    else
      process_plain<few, few>(n);
  } catch (Error& e) {
    locate(e, *n, moment);
    throw;
  } catch (const PythonError&) {
    locate_python_error(*n, moment);
    throw;
  }
};

// Backward inside of a hook or of a function's backward, and so on: past so many calls the next one
// gets another stack, C's and Python's, so that the depth is bounded by memory alone.
constexpr int nested_most = 60;
static constinit thread_local int nested = 0;

std::vector<Tensor> run_backward(BackwardArgs& args) {
  // Gradient rules run at once; what they read has been computed.
  if (collects()) deferral.run_collected();
  const InterceptWithout gathering(args.create_graph ? intercept_collect
                                                     : intercept_collect | intercept_budget);
  struct Nested {
    Nested() { ++nested; }
    ~Nested() { --nested; }
  } counted;
  if (nested > nested_most) {
    std::vector<Tensor> found;
    const uint64_t around = backward_id();
    auto inner = [&] {
      enter_backward(around);
      found = run_backward(args);
    };
    if (run_on_another_stack(inner)) return found;
  }
  const BackwardNumber number(args);
  TraceSpan trace("backward");
  GraphTask task(args);
  const BackwardTurn turn;
  task.turn = turn.node();
  task.run();
  if (!args.create_graph)
    for (Tensor& t : task.captures.found)
      if (t && t->cut == nullptr && !t->grad_fn && !(t->flags & flag_requires_grad))
        if (Cut* c = cut_of_backward()) {
          c->incref();
          t->cut = c;
        }
  return std::move(task.captures.found);
}

}  // namespace clew
