"""A redis-server whose wall clock can be made to jump at a word."""

import os
import struct
import subprocess

from redisproc import RedisProc

# libfaketime does not get along with the jemalloc of redis-server: each asks the other one first.
STEPPED_CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *step;

__attribute__((constructor)) static void start(void)
{
    int fd = open(getenv("STEPPED_CLOCK"), O_RDONLY);
    void *map = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || map == MAP_FAILED)
        abort();
    step = map;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int result = (int)syscall(SYS_clock_gettime, id, ts);
    if (result == 0 && step && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        ts->tv_sec += *step;
    return result;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}
"""



class SteppedRedis(RedisProc):
    """A redis-server whose wall clock is ours plus what step() says."""

    def __init__(self, name):
        super().__init__(name)
        self.file = os.path.join(self.dir, "step")
        self.library = os.path.join(self.dir, "step.so")
        self.step(0)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, "-x", "c", "-"],
                       input=STEPPED_CLOCK, text=True, check=True)

    def step(self, seconds):
        self.stepped = seconds
        with open(self.file, "r+b" if os.path.exists(self.file) else "wb") as out:
            out.write(struct.pack("l", seconds))

    def _argv(self):
        return ["env", "LD_PRELOAD=" + self.library, "STEPPED_CLOCK=" + self.file] + super()._argv()
