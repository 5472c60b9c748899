// A wall clock that is wrong for every process it is loaded into: namespaces of one machine share the kernel's
// clock. Only what is asked through the C library is moved: Python, the JVM and loadgen do so.
//
//     cc -shared -fPIC -O2 -o wrong_clock.so wrong_clock.c
//     LD_PRELOAD=wrong_clock.so WRONG_CLOCK=250000000,50000,1795207345000000000 date
//
// WRONG_CLOCK: by how many ns it is ahead, how many ns in a second it gains (50000 are 50 ppm), and since when.
// WRONG_CLOCK_JUMP: a file whose first eight bytes say how many ns it is ahead beside that, from when they are written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL

static int (*right_clock)(clockid_t, struct timespec *);
static long long ahead_ns, gained_ns_per_s, since_ns, no_jump_ns;
static volatile long long *jump_ns = &no_jump_ns;

static void learn(void) {
    const char *wrong = getenv("WRONG_CLOCK");
    if (wrong) sscanf(wrong, "%lld,%lld,%lld", &ahead_ns, &gained_ns_per_s, &since_ns);
    const char *jump = getenv("WRONG_CLOCK_JUMP");
    int file = jump ? open(jump, O_RDONLY) : -1;
    if (file >= 0) {
        void *mapped = mmap(NULL, sizeof *jump_ns, PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) jump_ns = mapped;
        close(file);
    }
    right_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    if (!right_clock) learn();
    int failed = right_clock(clock, at);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    long long right_ns = at->tv_sec * SECOND_NS + at->tv_nsec;
    long long wrong_ns = right_ns + ahead_ns + *jump_ns + (right_ns - since_ns) / 1000 * gained_ns_per_s / 1000000;
    at->tv_sec = wrong_ns / SECOND_NS;
    at->tv_nsec = wrong_ns % SECOND_NS;
    return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
