// Compares fast_memcpy and fast_memmove with loops over bytes, for all small sizes, distances and alignments.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void *fast_memcpy(void *to, const void *from, size_t n);
void *fast_memmove(void *to, const void *from, size_t n);

#define SIZE 4096

static uint8_t bytes[SIZE], expected[SIZE], original[SIZE];

// Returns whether moving `n` bytes gives what copying them through another buffer gives, and changes nothing else.
static int is_right(void *(*move)(void *, const void *, size_t), size_t to, size_t from, size_t n) {
  for (size_t at = 0; at < SIZE; at++) bytes[at] = expected[at] = original[at];
  for (size_t at = 0; at < n; at++) expected[to + at] = original[from + at];
  void *result = move(bytes + to, bytes + from, n);
  if (result == bytes + to && memcmp(bytes, expected, SIZE) == 0) return 1;
  printf("moving %zu bytes from %zu to %zu is wrong\n", n, from, to);
  return 0;
}

int main(void) {
  uint32_t state = 1;
  for (size_t at = 0; at < SIZE; at++) original[at] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
  static const size_t sizes[] = {383, 384, 385, 511, 512, 513, 1000};
  unsigned tried = 0;
  for (size_t round = 0; round < 280 + sizeof(sizes) / sizeof(*sizes); round++) {
    size_t n = round < 280 ? round : sizes[round - 280];
    for (size_t distance = 0; distance <= 2 * n + 2; distance += distance < 70 || n < 70 ? 1 : 31) {
      for (size_t begin = 1000; begin < 1000 + 64; begin += 21, tried += 2) {
        if (!is_right(fast_memmove, begin + distance, begin, n) || !is_right(fast_memmove, begin, begin + distance, n)) return 1;
      }
    }
    for (size_t begin = 0; begin < 64; begin++, tried++) {
      if (!is_right(fast_memcpy, 2048 + begin, begin * 7 % 64, n)) return 1;
    }
  }
  printf("%u copies\n", tried);
  return 0;
}
