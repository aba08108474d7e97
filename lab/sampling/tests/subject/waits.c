// A program whose threads wait in known ways. At its end it prints how long they waited, by its own clock.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static atomic_llong waited, lived;
static atomic_int ended;
static const char *folder;

static long long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void pause_us(long us) {
  struct timespec time = {0, us * 1000};
  nanosleep(&time, NULL);
}

static void spin_us(long us) {
  long long end = now(CLOCK_THREAD_CPUTIME_ID) + us * 1000;
  while (now(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

__attribute__((noinline)) void under_the_lock(void) {
  long long begin = now(CLOCK_MONOTONIC);
  pthread_mutex_lock(&lock);
  waited += now(CLOCK_MONOTONIC) - begin;
  pause_us(1000);
  pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void to_the_disk(int file) {
  if (pwrite(file, "0123456789abcdef", 16, 0) != 16) abort();
  long long begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
  fsync(file);
  waited += now(CLOCK_MONOTONIC) - begin - (now(CLOCK_THREAD_CPUTIME_ID) - cpu);
}

__attribute__((noinline)) void for_work(void) {
  pthread_mutex_lock(&work_lock);
  pthread_cond_wait(&work, &work_lock);
  pthread_mutex_unlock(&work_lock);
}

static void named(const char *name) { prctl(PR_SET_NAME, name); }

static void *convoy(void *name) {
  named(name);
  long long begin = now(CLOCK_MONOTONIC);
  while (!ended) {
    spin_us(50);
    under_the_lock();
  }
  lived += now(CLOCK_MONOTONIC) - begin;
  return NULL;
}

static void *syncer(void *name) {
  named(name);
  char path[4096];
  snprintf(path, sizeof path, "%s/synced", folder);
  int file = open(path, O_CREAT | O_RDWR, 0600);
  long long begin = now(CLOCK_MONOTONIC);
  while (!ended) {
    spin_us(100);
    to_the_disk(file);
  }
  lived += now(CLOCK_MONOTONIC) - begin;
  return NULL;
}

static void *spinner(void *name) {
  named(name);
  while (!ended) spin_us(1000);
  return NULL;
}

static void *sleeper(void *name) {
  named(name);
  while (!ended) pause_us(5000);
  return NULL;
}

static void *poller(void *name) {
  named(name);
  int ends[2];
  if (pipe(ends)) abort();
  struct pollfd one = {ends[0], POLLIN, 0};
  while (!ended) poll(&one, 1, 7);
  return NULL;
}

static void *waiter(void *name) {
  named(name);
  while (!ended) for_work();
  return NULL;
}

static void *waker(void *name) {
  named(name);
  while (!ended) {
    pause_us(2000);
    pthread_cond_signal(&work);
  }
  return NULL;
}

static void *switcher(void *name) {
  named(name);
  while (!ended) sched_yield();
  return NULL;
}

static void *short_lived(void *name) {
  named(name);
  spin_us(200);
  return NULL;
}

static void *spawner(void *name) {
  named(name);
  while (!ended) {
    pthread_t thread;
    pthread_create(&thread, NULL, short_lived, "short-1");
    pthread_join(thread, NULL);
    pause_us(1000);
  }
  return NULL;
}

static int started;
static pthread_t threads[16];

static void start(void *(*run)(void *), const char *name) {
  pthread_create(&threads[started++], NULL, run, (void *)name);
}

int main(int count, char **words) {
  const char *mode = count > 1 ? words[1] : "";
  folder = count > 2 ? words[2] : ".";
  if (strcmp(mode, "convoy") == 0) {
    start(convoy, "worker-1");
    start(convoy, "worker-2");
    start(convoy, "worker-3");
    start(convoy, "worker-4");
  } else if (strcmp(mode, "sync") == 0) {
    start(syncer, "syncer-1");
  } else if (strcmp(mode, "starved") == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(atoi(folder), &one);
    sched_setaffinity(0, sizeof one, &one);
    start(spinner, "spinner-1");
    start(spinner, "spinner-2");
    start(spinner, "spinner-3");
  } else if (strcmp(mode, "short") == 0) {
    start(spawner, "spawner");
  } else if (strcmp(mode, "switches") == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(atoi(folder), &one);
    sched_setaffinity(0, sizeof one, &one);
    start(switcher, "switcher-1");
    start(switcher, "switcher-2");
  } else {
    start(sleeper, "sleeper");
    start(poller, "poller");
    start(waiter, "waiter");
    start(waker, "waker");
  }
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  ended = 1;
  for (int at = 0; at < started; at++) {
    pthread_cond_broadcast(&work);
    pthread_join(threads[at], NULL);
  }
  printf("%lld %lld\n", (long long)waited, (long long)lived);
  return 0;
}
