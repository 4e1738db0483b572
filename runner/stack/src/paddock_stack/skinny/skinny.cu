// y[token, row] = sum over k of x[token, k] * w[row, k], for at most eight tokens, through weights read once.
//
// The weights are the A operand of mma.m16n8k16 (sixteen rows), the tokens its B operand (eight columns). A token's
// column of a product is computed alike whatever stands in the others, so its sum does not depend on how many tokens
// came along: a speculative step equals a plain one, bit for bit.
//
// Set at compile time: BITS of a weight (4, or 16 for bf16), GROUP columns a scale (0: one scale a row), WARPS a block,
// TILES of sixteen rows a warp, DEPTH reads in flight a warp. The warps of a block share a row's columns, and so do
// gridDim.y blocks; the last of these to finish adds their parts in order. The order of a sum thus depends on WARPS and
// gridDim.y, both chosen from the shape. How int4 weights lie: see layout.py; bf16 weights lie as torch keeps them. No
// header is included, so that NVRTC compiles this without a CUDA toolkit.
typedef unsigned int u32;
typedef unsigned short u16;

#define UNIT 64  // columns that a warp reads at a time
#if GROUP == 32
#define SCALES 2  // of each row in a unit
#define GROUPS(columns) ((columns) / 32)
#elif GROUP
#define SCALES 1
#define GROUPS(columns) ((columns) / GROUP)
#else
#define SCALES 1
#define GROUPS(columns) 1
#endif

__device__ __forceinline__ uint4 streamed(const uint4* at) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

// c + the product of 16 x 16 weights with 16 x 8 activations.
__device__ __forceinline__ float4 multiplied(u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, float4 c) {
  float4 d;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d.x), "=f"(d.y), "=f"(d.z), "=f"(d.w)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(c.x), "f"(c.y), "f"(c.z), "f"(c.w));
  return d;
}

__device__ __forceinline__ float4 zero() { return make_float4(0.f, 0.f, 0.f, 0.f); }

struct Cursor {
  const uint4* words;
  const u32* scales;
};

#if BITS == 16

// A lane holds, of rows g and g + 8 and of each half of a unit, the eight columns that it holds of a token as well.
struct Weights {
  uint4 low[TILES][2], high[TILES][2];
};

// Where a lane begins to read in `tile` at unit `first`.
__device__ __forceinline__ Cursor cursor(const uint4* words, const u32* scales, long tile, int first, int units,
                                         int lane) {
  return {words + ((tile * 16 + (lane >> 2)) * units + first) * 8 + (lane & 3), scales};
}

__device__ __forceinline__ void fetch(Weights& into, Cursor& at, int unit, int units) {
#pragma unroll
  for (int r = 0; r < TILES; r++) {
    const uint4 *low = at.words + (long)r * units * 128, *high = low + units * 64;
    into.low[r][0] = streamed(low), into.high[r][0] = streamed(high);
    into.low[r][1] = streamed(low + 4), into.high[r][1] = streamed(high + 4);
  }
  at.words += 8;
}

__device__ __forceinline__ void add_unit(float4* sum, const Weights& w, const uint4* x) {
#pragma unroll
  for (int r = 0; r < TILES; r++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint4 low = w.low[r][half], high = w.high[r][half];
      sum[r] = multiplied(low.x, high.x, low.y, high.y, x[half].x, x[half].y, sum[r]);
      sum[r] = multiplied(low.z, high.z, low.w, high.w, x[half].z, x[half].w, sum[r]);
    }
  }
}

#else

// Two of a word's eight weights as a pair of bf16: four bits or-ed under the exponent of 128 give 128 + n, and taking
// 136 off gives the weight. Both steps are exact.
__device__ __forceinline__ u32 pair(u32 word) {
  u32 v;
  asm("lop3.b32 %0, %1, 0x000f000f, 0x43004300, 0xea;" : "=r"(v) : "r"(word));
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(v) : "r"(v), "r"(0x3f803f80u), "r"(0xc308c308u));
  return v;
}

__device__ __forceinline__ float4 multiplied(u32 word, u32 b0, u32 b1, float4 c) {
  return multiplied(pair(word), pair(word >> 4), pair(word >> 8), pair(word >> 12), b0, b1, c);
}

// The low half of `scales` is row g's scale, the high half row g + 8's, both bf16.
__device__ __forceinline__ void add_scaled(float4& sum, float4 part, u32 scales) {
  const float low = __uint_as_float(scales << 16), high = __uint_as_float(scales & 0xffff0000u);
  sum.x += low * part.x;
  sum.y += low * part.y;
  sum.z += high * part.z;
  sum.w += high * part.w;
}

struct Weights {
  uint4 words[TILES];
  u32 scales[TILES][SCALES];
};

// Where a lane begins to read in `tile` at unit `first`.
__device__ __forceinline__ Cursor cursor(const uint4* words, const u32* scales, long tile, int first, int units,
                                         int lane) {
  Cursor at = {words + (tile * units + first) * 32 + lane, scales + tile * GROUPS(units * UNIT) * 8 + (lane >> 2)};
#if GROUP
  at.scales += first * UNIT / GROUP * 8;
#endif
  return at;
}

__device__ __forceinline__ void fetch(Weights& into, Cursor& at, int unit, int units) {
#pragma unroll
  for (int r = 0; r < TILES; r++) {
    into.words[r] = streamed(at.words + r * units * 32);
#pragma unroll
    for (int s = 0; s < SCALES; s++) into.scales[r][s] = at.scales[r * GROUPS(units * UNIT) * 8 + s * 8];
  }
  at.words += 32;
#if GROUP
  at.scales += GROUP <= UNIT ? 8 * SCALES : ((unit + 1) % (GROUP / UNIT) == 0) * 8;
#endif
}

__device__ __forceinline__ void add_unit(float4* sum, const Weights& w, const uint4* x) {
#pragma unroll
  for (int r = 0; r < TILES; r++) {
    const uint4 v = w.words[r];
    const float4 first = multiplied(v.y, x[0].z, x[0].w, multiplied(v.x, x[0].x, x[0].y, zero()));
#if SCALES == 2
    add_scaled(sum[r], first, w.scales[r][0]);
    const float4 rest = multiplied(v.w, x[1].z, x[1].w, multiplied(v.z, x[1].x, x[1].y, zero()));
#else
    const float4 rest = multiplied(v.w, x[1].z, x[1].w, multiplied(v.z, x[1].x, x[1].y, first));
#endif
    add_scaled(sum[r], rest, w.scales[r][SCALES - 1]);
  }
}

#endif  // BITS

__device__ __forceinline__ u16 rounded(float v) {
  u16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
skinny(const uint4* __restrict__ words, const u32* __restrict__ scales, const u16* __restrict__ x,
       u16* __restrict__ y, float* __restrict__ parts, u32* __restrict__ arrived, int rows, int columns, int tokens) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int units = columns / UNIT, slices = WARPS * gridDim.y, slice = blockIdx.y * WARPS + warp;
  const int first = units * slice / slices, last = units * (slice + 1) / slices;
  const long tile = (long)blockIdx.x * TILES;
  Cursor at = cursor(words, scales, tile, first, units, lane);
  const bool live = g < tokens;
  const u16* xs = x + (live ? (long)g * columns : 0) + 8 * t + (long)first * UNIT;
  float4 sum[TILES];
#pragma unroll
  for (int r = 0; r < TILES; r++) sum[r] = zero();
  Weights ring[DEPTH];
#pragma unroll
  for (int d = 0; d < DEPTH; d++)
    if (first + d < last) fetch(ring[d], at, first + d, units);
  uint4 now[2], next[2] = {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0)};
  if (live && first < last) next[0] = *(const uint4*)xs, next[1] = *(const uint4*)(xs + 32);

  int u = first;
  for (; u + 2 * DEPTH <= last; u += DEPTH) {  // every read of a round and of the next lies inside
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      now[0] = next[0], now[1] = next[1];
      xs += UNIT;
      if (live) next[0] = *(const uint4*)xs, next[1] = *(const uint4*)(xs + 32);
      const Weights w = ring[d];
      fetch(ring[d], at, u + d + DEPTH, units);
      add_unit(sum, w, now);
    }
  }
  for (; u < last; u += DEPTH) {
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      if (u + d < last) {
        now[0] = next[0], now[1] = next[1];
        xs += UNIT;
        if (live && u + d + 1 < last) next[0] = *(const uint4*)xs, next[1] = *(const uint4*)(xs + 32);
        const Weights w = ring[d];
        if (u + d + DEPTH < last) fetch(ring[d], at, u + d + DEPTH, units);
        add_unit(sum, w, now);
      }
    }
  }

  const int values = TILES * 128;
  __shared__ float shared[WARPS][values];
  __shared__ bool is_last;
#pragma unroll
  for (int r = 0; r < TILES; r++) {
    float* to = shared[warp] + r * 128 + lane;
    to[0] = sum[r].x, to[32] = sum[r].y, to[64] = sum[r].z, to[96] = sum[r].w;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < values; i += WARPS * 32) {
    float total = 0.f;
#pragma unroll
    for (int v = 0; v < WARPS; v++) total += shared[v][i];
    shared[0][i] = total;
    if (gridDim.y > 1) __stcg(parts + ((long)blockIdx.x * gridDim.y + blockIdx.y) * values + i, total);
  }
  if (gridDim.y > 1) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      is_last = atomicAdd(arrived + blockIdx.x, 1u) == gridDim.y - 1;
      if (is_last) arrived[blockIdx.x] = 0;  // ready for the next launch
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
  }
  for (int i = threadIdx.x; i < values; i += WARPS * 32) {
    float total = shared[0][i];
    if (gridDim.y > 1) {
      total = 0.f;
      for (int v = 0; v < gridDim.y; v++) total += __ldcg(parts + ((long)blockIdx.x * gridDim.y + v) * values + i);
    }
    const int element = (i >> 5) & 3, owner = i & 31, token = (owner & 3) * 2 + (element & 1);
    const long row = (tile + (i >> 7)) * 16 + (owner >> 2) + (element >> 1) * 8;
    if (token < tokens) y[(long)token * rows + row] = rounded(total);
  }
}
