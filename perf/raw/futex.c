/* The raw limit of waking: the same to and fro (cacheline.c), but whoever waits sleeps in the
 * kernel, and is woken. */
#define SLEEPS 1
#include "cacheline.c"
