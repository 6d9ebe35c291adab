// Sampling of images and volumes at places between their elements, and its gradients.
// May include: the standard library.
// Invariant: what lies outside is neither read nor added to.
#pragma once
#include <cstdint>

namespace clew::kernels {

enum class GridMode : uint8_t { linear, nearest, cubic };
enum class GridPadding : uint8_t { zeros, border, reflection };

// Images x [n, c, sizes], places [n, p, dims] (x first), samples [n, c, p]; all contiguous. A
// channel has s elements, fewer than 2^31.
struct GridShape {
  int64_t n, c, s, p;
  int dims;  // 2 or 3; cubic needs 2
  int64_t sizes[3];
  GridMode mode;
  GridPadding padding;
  bool align;  // -1 and 1 are the centers of the corner elements, not their outer edges
};

// The loops over `count` places of one sample and all their channels, at most grid_block places,
// compiled once for each instruction set. Pointers are those of the first place and channel.
constexpr int64_t grid_block = 128;
template <class T> struct GridLoops {
  void (*sample)(T* out, const T* x, const T* grid, const GridShape& shape, int64_t count);
  // Adds to dx, of so many channels.
  void (*image_slopes)(T* dx, const T* grad, const T* grid, const GridShape& shape,
                       int64_t channels, int64_t count);
  void (*grid_slopes)(T* dgrid, const T* x, const T* grad, const T* grid, const GridShape& shape,
                      int64_t count);
};

template <class T> void grid_sample(T* out, const T* x, const T* grid, const GridShape& shape);
template <class T>
void grid_sample_image_slopes(T* dx, const T* grad, const T* grid, const GridShape& shape);
template <class T>
void grid_sample_grid_slopes(T* dgrid, const T* x, const T* grad, const T* grid,
                             const GridShape& shape);

}  // namespace clew::kernels
